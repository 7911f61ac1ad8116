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
from decopt import matrices
from decopt import measures
from decopt import report as report_lib

_QUICK = 1e9  # multiplications in a product of all rounds: less than a second


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
    TypeError: if the name is not a string, or weights are not real numbers.
    ValueError: for weights of another shape, for NaN or negative ones, or when
      neither all rows nor all columns sum to 1 within 1e-12, in each round.

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
        "decopt.Topology(weights, 'mine')."
      )
    weights = matrices.checked(self.weights, self.name)
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
    return bool(np.abs(self.weights - transposed).max() <= matrices.TOLERANCE)

  def is_row_stochastic(self) -> bool:
    """Whether mixing leaves workers that agree as they are."""
    return matrices.sum_to_one(self.weights, axis=-1)

  def is_column_stochastic(self) -> bool:
    """Whether mixing preserves the sum over workers."""
    return matrices.sum_to_one(self.weights, axis=-2)

  def is_doubly_stochastic(self) -> bool:
    """Whether mixing does both, so that agreement is on the mean."""
    return self.is_row_stochastic() and self.is_column_stochastic()

  def is_connected(self) -> bool:
    """Whether a period's links, together, lead from each worker to all others.

    Workers then hear of each other, but need not agree: two that only swap
    their values never do.
    """
    links = self.links.any(axis=0)
    return all(matrices.reached(way).all() for way in (links, links.T))

  def spectral_gap(self) -> float:
    r"""How much of the disagreement between workers dies in a round, 0 to 1.

    It is :math:`1 - \rho^{1/\mathrm{period}}`, where :math:`\rho` measures
    :math:`P`, the product of the rounds of a period. For doubly stochastic
    weights it is the largest factor by which a period may still multiply the
    distance from the mean, the second largest singular value of :math:`P`. For
    others it is the factor in the long run, the second largest modulus of an
    eigenvalue. For one symmetric matrix both are the textbook
    :math:`\max_{k>1} |\lambda_k|`.

    The gap is 1 if a period makes all agree exactly, and 0 if some workers
    never do. With doubly stochastic weights it is also 0 if a single period may
    leave the distance as it is, though several do not; see `rounds_to`. What is
    below 1e-12 is given as 0.
    """
    return self._spectral_gap

  def rounds_to(self, tolerance: float = 1e-3) -> int | None:
    r"""Rounds after which workers are close to each other, wherever they start.

    Let :math:`x_i(t)` be the value of worker :math:`i` after :math:`t` rounds,
    de-biased if rows do not sum to 1, and :math:`d_t` the distance of all from
    their mean, :math:`d_t^2 = \sum_i \| x_i(t) - \bar x(t) \|^2`. Then
    :math:`d_t \leq \epsilon d_0` with :math:`\epsilon` = ``tolerance``.

    It is the smallest such :math:`t`, if weights preserve the mean. Others may
    let the distance fall, rise and fall again; :math:`t` is then a round of
    which this is true, and not of the one before.

    Args:
      tolerance: more than 0 and less than 1.

    Returns:
      The number of rounds, or None if that never happens.

    Raises:
      TypeError: if `tolerance` is no number.
      ValueError: if it is not in this range.

    Example:
      >>> decopt.hypercube(8).rounds_to(1e-6)
      20
    """
    return measures.rounds_to(self, tolerance)

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
      TypeError: if `decay` is no number.
      ValueError: if it is not in this range.

    References:
      Vogels, Hendrikx and Jaggi, `Beyond spectral gap
      <https://arxiv.org/abs/2206.03093>`_, 2022.
    """
    return measures.effective_neighbours(self, decay)

  def report(self, message_bytes: float = 4) -> report_lib.Report:
    """What this graph does to consensus and what it costs; prints as a table.

    Args:
      message_bytes: of one message, 0 or more; the default is one float32
        parameter, and gives the bytes for each parameter of a model.

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
    text = (
      f'Topology({self.name!r}, workers={self.workers}, degree={self.degree}, '
      f'period={self.period}'
    )
    if self.period * self.workers**3 <= _QUICK or '_spectral_gap' in vars(self):
      text += f', spectral_gap={self.spectral_gap():.4g}'
    return f'{text})'

  def __reduce__(self):
    return Topology, (self.weights, self.name)  # copies are read-only, too

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
    return measures.spectral_gap(self)

  @functools.cached_property
  def _hash(self) -> int:
    return hash((self.name, self.weights.shape, self.weights.tobytes()))
