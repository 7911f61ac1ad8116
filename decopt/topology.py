"""Who listens to whom, and how much: one array that says it all.

A topology is its mixing weights. Everything else that one may ask of a graph
(how many neighbours, is the mean preserved, how fast does disagreement die,
which messages to send) is computed from them, so that no property can disagree
with the numbers that are used. All of it is numpy, on the host, before anything
is traced.
"""

import dataclasses
import functools

import numpy as np

from decopt import colouring
from decopt import measures
from decopt import report as report_lib

_TOLERANCE = 1e-12


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Topology:
  r"""Mixing weights of a fixed or periodic graph over workers.

  In round :math:`t` worker :math:`i` replaces its value by a weighted sum of
  what it holds and what it hears,

  .. math::

    x_i \leftarrow \sum_j W^{(t)}_{ij} x_j ,

  and rounds repeat after ``period`` of them. Weights are not negative, and in
  each round all rows sum to 1 (consensus is a fixed point), or all columns do
  (the sum over workers is preserved), or both (what gossip averaging needs).

  Two topologies of the same name and weights are equal and have the same hash:
  a topology can be a static argument of `jax.jit`.

  Attributes:
    weights: float64 `[period, workers, workers]`, read-only. `weights[t, i, j]`
      is the weight that receiver `i` puts on sender `j` in round `t`. One
      matrix `[workers, workers]` is taken as a period of one round.
    name: what errors and plots call this topology.

  Raises:
    TypeError: if the name is not a string.
    ValueError: for weights of another shape, for NaN or negative ones, or when
      neither all rows nor all columns of a round sum to 1 within 1e-12.

  Example:
    >>> Topology([[0.75, 0.25], [0.25, 0.75]], 'a shy pair')
    Topology('a shy pair', workers=2, degree=1, period=1, spectral_gap=0.5)
  """

  weights: np.ndarray
  name: str

  def __post_init__(self):
    if not isinstance(self.name, str):
      raise TypeError(
        f'Topology got {self.name!r} as its name. Give weights, then a name: '
        "Topology(weights, 'mine')."
      )
    weights = np.array(self.weights, dtype=np.float64)
    if weights.ndim == 2:
      weights = weights[None]
    _check(weights, self.name)
    weights.setflags(write=False)
    object.__setattr__(self, 'weights', weights)

  @property
  def workers(self) -> int:
    return self.weights.shape[1]

  @property
  def period(self) -> int:
    return self.weights.shape[0]

  @functools.cached_property
  def links(self) -> np.ndarray:
    """bool `[period, workers, workers]`: whom each receiver hears, not itself.

    Entry `[t, i, j]` says that in round `t` worker `i` puts a weight on `j`.
    """
    links = (self.weights > 0) & ~np.eye(self.workers, dtype=bool)
    links.setflags(write=False)
    return links

  @functools.cached_property
  def degree(self) -> int:
    """Largest number of neighbours that a worker has in a round.

    Those it hears or those it sends to, whichever are more; not itself.
    """
    heard, told = self.links.sum(axis=2), self.links.sum(axis=1)
    return int(max(heard.max(), told.max()))

  def self_weights(self, t: int) -> np.ndarray:
    """float64 `[workers]`: what each worker puts on itself in round `t`."""
    return self.weights[t % self.period].diagonal()

  def permutations(self, t: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The messages of round `t`, as full permutations with their weights.

    A round is `self_weights(t) * own value` plus, for each pair returned,
    `weights * value of sources`. A graph that looks the same from each worker
    gives shifts: a ring gives those by +1 and -1.

    Args:
      t: the round; rounds repeat, so `t` may be any step.

    Returns:
      A list of `(sources, weights)`, as many as the round's degree. `sources`
      is an int array `[workers]` in which each worker occurs once: worker `i`
      receives from `sources[i]`. `weights` is float64 `[workers]`, the weight
      that `i` puts on it, and 0 for messages that only make the permutation
      full: from a worker to itself if it has nothing to send in it.
    """
    return list(self._permutations[t % self.period])

  def is_symmetric(self) -> bool:
    """Whether each worker puts on another what the other puts on it."""
    transposed = self.weights.swapaxes(1, 2)
    return bool(np.abs(self.weights - transposed).max() <= _TOLERANCE)

  def is_row_stochastic(self) -> bool:
    """Whether mixing leaves workers that agree as they are."""
    return bool(_sums_to_one(self.weights, axis=2).all())

  def is_column_stochastic(self) -> bool:
    """Whether mixing preserves the sum over workers."""
    return bool(_sums_to_one(self.weights, axis=1).all())

  def is_doubly_stochastic(self) -> bool:
    """Whether mixing does both, so that agreement is on the mean."""
    return self.is_row_stochastic() and self.is_column_stochastic()

  def is_connected(self) -> bool:
    """Whether within some periods each worker hears from every other one."""
    links = self.links.any(axis=0)
    return bool(reached(links).all() and reached(links.T).all())

  def spectral_gap(self) -> float:
    r"""How much of the disagreement between workers dies in a round, 0 to 1.

    It is :math:`1 - \rho^{1/\mathrm{period}}`, where :math:`\rho` measures
    :math:`P`, the product of the rounds of a period. For doubly stochastic
    weights it is the largest factor by which the distance from the mean may
    still be multiplied, the second largest singular value of :math:`P`. For
    others it is the asymptotic factor, the second largest modulus of an
    eigenvalue. For one symmetric matrix both are the textbook
    :math:`\max_{k>1} |\lambda_k|`. The gap is 1 if one period averages exactly,
    and 0 if some workers never meet.
    """
    return self._spectral_gap

  def effective_neighbours(self, decay: float = 0.95) -> float:
    r"""By how much averaging reduces the variance of what workers accumulate.

    Let each worker's value take up noise of variance 1 in each round and forget
    a part of the past, :math:`z \leftarrow W^{(t)} (\sqrt{\gamma} z + \xi)`,
    with :math:`\gamma` = ``decay``. Alone a worker would come to the variance
    :math:`1 / (1 - \gamma)`; how many times smaller it is with the others is

    .. math::

      n_W(\gamma) = \frac{1}{1 - \gamma} \Big/ \Big( \frac1n
      \sum_{k \geq 1} \gamma^{k-1} \| W_k \cdots W_1 \|_F^2 \Big) ,

    the mean over workers and over the rounds of a period that may come last.
    For one symmetric :math:`W` the sum is :math:`\sum_i \lambda_i^2 / (1 -
    \gamma \lambda_i^2)` of its eigenvalues. It is 1 without links, and
    :math:`n` on the complete graph; on a ring it rises from 3 to :math:`n` with
    the decay: from a worker and its neighbours to all. Values of push-sum are
    taken as they are de-biased; it is 0 if the weight of a worker dies out.

    Args:
      decay: from 0 to less than 1: what is left of a variance after a round.
        The default is about the 0.951 that the paper fits to a convolutional
        network on CIFAR-10.

    Raises:
      ValueError: if it is not in this range.

    References:
      Vogels, Hendrikx and Jaggi, `Beyond spectral gap
      <https://arxiv.org/abs/2206.03093>`_, 2022.
    """
    return measures.effective_neighbours(self, decay)

  def report(self, message_bytes: float = 4) -> report_lib.Report:
    """What this graph does to consensus and what it costs; prints as a table.

    Args:
      message_bytes: of one message; the default is one float32 parameter, and
        gives the bytes for each parameter of a model.

    Example:
      >>> decopt.hypercube(8).report().rounds_to
      10
    """
    return report_lib.of(self, message_bytes)

  def __eq__(self, other) -> bool:
    if not isinstance(other, Topology):
      return NotImplemented
    return self is other or (
      self.name == other.name and np.array_equal(self.weights, other.weights)
    )

  def __hash__(self) -> int:
    return self._hash

  def __repr__(self) -> str:
    return (
      f'Topology({self.name!r}, workers={self.workers}, degree={self.degree}, '
      f'period={self.period}, spectral_gap={self.spectral_gap():.4g})'
    )

  @functools.cached_property
  def _permutations(self) -> list[list[tuple[np.ndarray, np.ndarray]]]:
    receivers = np.arange(self.workers)
    rounds = [[] for _ in self.weights]
    for t, found in enumerate(map(colouring.permutations, self.links)):
      for sources, is_link in found:
        heard = np.where(is_link, self.weights[t, receivers, sources], 0.0)
        for array in (sources, heard):
          array.setflags(write=False)  # the cached list is handed out
        rounds[t].append((sources, heard))
    return rounds

  @functools.cached_property
  def _spectral_gap(self) -> float:
    deviation = np.eye(self.workers) - 1 / self.workers
    for weights in self.weights:
      before = np.linalg.norm(deviation)
      deviation = weights @ deviation
      deviation -= deviation.mean(axis=0)
      if np.linalg.norm(deviation) <= 1e-13 * before:
        return 1.0  # what is left is rounding, and roots would magnify it
    if self.is_doubly_stochastic():
      rho = np.sqrt(np.linalg.eigvalsh(deviation.T @ deviation).max())
    else:
      rho = np.abs(np.linalg.eigvals(deviation)).max()
    return float(1 - min(rho, 1.0) ** (1 / self.period))

  @functools.cached_property
  def _hash(self) -> int:
    return hash((self.name, self.weights.shape, self.weights.tobytes()))


def _check(weights: np.ndarray, name: str) -> None:
  """Raises the error that says what is wrong with the weights, if anything."""
  if (
    weights.ndim != 3
    or weights.shape[1] != weights.shape[2]
    or not weights.size
  ):
    raise ValueError(
      f'topology {name!r} needs weights of shape [period, workers, workers] or '
      f'[workers, workers], none of them 0, but got {list(weights.shape)}.'
    )
  for problem, bad in (
    ('finite', ~np.isfinite(weights)),
    ('zero or positive', weights < 0),
  ):
    if bad.any():
      t, receiver, sender = np.argwhere(bad)[0].tolist()
      raise ValueError(
        f'topology {name!r} needs {problem} weights, but weights[{t}, '
        f'{receiver}, {sender}] is {weights[t, receiver, sender]}.'
      )
  rows, columns = _sums_to_one(weights, axis=2), _sums_to_one(weights, axis=1)
  if not rows.all() and not columns.all():
    t, receiver = np.argwhere(~rows)[0].tolist()
    s, sender = np.argwhere(~columns)[0].tolist()
    raise ValueError(
      f'topology {name!r} needs rows that sum to 1 (or columns, for push-sum), '
      f'in all rounds, but row {receiver} of round {t} sums to '
      f'{weights[t, receiver].sum():.15g} and column {sender} of round {s} to '
      f'{weights[s, :, sender].sum():.15g}. Divide the rows by their sums: '
      'weights / weights.sum(axis=-1, keepdims=True).'
    )


def _sums_to_one(weights: np.ndarray, axis: int) -> np.ndarray:
  return np.abs(weights.sum(axis=axis) - 1) <= _TOLERANCE


def reached(links: np.ndarray, start: int = 0) -> np.ndarray:
  """bool `[workers]`: whom a message gets to; `links[receiver, sender]`."""
  found = np.zeros(len(links), bool)
  new = np.array([start])
  while new.size:
    found[new] = True
    new = np.flatnonzero(links[:, new].any(axis=1) & ~found)
  return found
