"""Random graphs in which all workers have as many neighbours.

Nearly all of them are as quick to agree as a graph of so few links can be. They
come from networkx; the same seed gives the same graph.
"""

import math
import random

import numpy as np

from decopt import arguments
from decopt import weights
from decopt.graphs import links
from decopt.topology import Topology


def random_regular(workers: int, degree: int = 3, *, seed: int = 0) -> Topology:
  """As many random neighbours for each worker, with weights `1/(degree + 1)`.

  Symmetric. A graph in pieces is thrown away and another one drawn.

  Args:
    workers: any number larger than `degree`; an even one if `degree` is odd.
    degree: how many neighbours a worker has: 2 or more, or 1 for two workers.
    seed: of the draws; 0 or more.

  Raises:
    TypeError: if an argument is not an integer.
    ValueError: if there is no such graph, with the numbers nearest to it that
      have one; or if no connected one was found.

  Example:
    >>> topology = random_regular(16)
    >>> topology.degree, round(topology.spectral_gap(), 3)
    (3, 0.151)
  """
  workers = arguments.count('random_regular', workers=workers)
  degree = arguments.count('random_regular', degree=degree)
  rng = random.Random(arguments.count('random_regular', seed=seed, least=0))
  _check_exists('random_regular', workers, degree)
  return links.first_drawn(
    lambda: _draw('random_regular', workers, degree, rng),
    Topology.is_connected,
    f'random_regular found no connected graph of {workers} workers with '
    f'degree={degree}. Use degree={degree + 2}.',
  )


def expander(workers: int, degree: int = 4, *, seed: int = 0) -> Topology:
  r"""Few links, and yet as quick to agree for any number of workers.

  A random regular graph, drawn again until it is a Ramanujan graph: all
  eigenvalues of its adjacency matrix but the largest are within
  :math:`\pm 2 \sqrt{d - 1}` for the ``degree`` :math:`d`, so that the spectral
  gap of the weights :math:`1 / (d + 1)` is at least

  .. math::

    \frac{d - 2 \sqrt{d - 1}}{d + 1} ,

  0.107 for four neighbours, of 10 workers or 1,000. Symmetric. With
  ``degree + 1`` workers or fewer all are linked to all.

  Args:
    workers: any number, 1 or more; an even one if `degree` is odd, or at most
      `degree`.
    degree: how many neighbours a worker has: 3 or more, as rings do not expand.
    seed: of the draws; 0 or more.

  Raises:
    TypeError: if an argument is not an integer.
    ValueError: if one is too small; if there is no such graph, with the numbers
      nearest to it that have one; or if no Ramanujan graph was found.

  Example:
    >>> expander(64)
    Topology('expander', workers=64, degree=4, period=1, spectral_gap=0.1466)

  References:
    Lubotzky, Phillips and Sarnak, Ramanujan Graphs, 1988; Friedman, `A Proof of
    Alon's Second Eigenvalue Conjecture
    <https://arxiv.org/abs/cs/0405020>`_, 2008 (random ones are).
  """
  workers = arguments.count('expander', workers=workers)
  degree = arguments.count('expander', degree=degree, least=3)
  rng = random.Random(arguments.count('expander', seed=seed, least=0))
  if workers <= degree + 1:
    return weights.uniform('expander', links.everyone(workers))
  _check_exists('expander', workers, degree, least=3)
  return links.first_drawn(
    lambda: _draw('expander', workers, degree, rng),
    lambda topology: _is_ramanujan(topology, degree),
    f'expander found no Ramanujan graph of {workers} workers with '
    f'degree={degree}. Use degree={degree + 2}, or another seed.',
  )


def _check_exists(name: str, workers: int, degree: int, least: int = 2) -> None:
  """Raises the error that names the graphs that exist, if this one does not."""
  if degree == 1 and workers > 2:
    raise ValueError(
      f'{name} of degree 1 has pairs that never meet, for {workers} workers. '
      f'Use degree=2 or more; or decopt.random_matchings({workers}), in which '
      'pairs change.'
    )
  if workers <= degree:
    raise ValueError(
      f'{name} needs more workers than degree={degree}, but got {workers}. Use '
      f'decopt.{name}({degree + 1}, degree={degree}), or '
      f'decopt.complete({workers}).'
    )
  if workers * degree % 2:
    degrees = [d for d in (degree - 1, degree + 1) if d >= least]
    raise ValueError(
      f'{name} needs an even number of workers if the degree is odd, but got '
      f'{workers} workers and degree={degree}. Use {workers - 1} or '
      f'{workers + 1} workers, or degree={" or ".join(map(str, degrees))}.'
    )


def _draw(name: str, workers: int, degree: int, rng) -> Topology:
  import networkx  # slow to import, and only needed here

  # Drawing many links without a double one takes forever: leave out the others.
  fewer = min(degree, workers - 1 - degree)
  meets = links.of_graph(
    networkx.random_regular_graph(fewer, workers, seed=rng)
  )
  return weights.uniform(name, meets if fewer == degree else ~meets)


def _is_ramanujan(topology: Topology, degree: int) -> bool:
  adjacency = topology.weights[0] * (degree + 1) - np.eye(topology.workers)
  *others, _ = np.linalg.eigvalsh(adjacency)
  return np.abs(others).max() <= 2 * math.sqrt(degree - 1) + 1e-9
