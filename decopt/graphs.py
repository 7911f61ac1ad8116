"""Graphs with a name, for any number of workers.

To add one, say who hears whom and return `uniform` weights if all workers have
as many neighbours, `metropolis_hastings` weights for other undirected graphs,
or a `Topology` of weights of your own. All weights here are doubly
stochastic: rows sum to 1, so that agreement lasts, and columns sum to 1, so
that the mean over workers is preserved. Links that would be double, on a ring
of two or a torus with a short side, count once.
"""

import operator
from collections.abc import Iterable

import numpy as np

from decopt.topology import Topology


def ring(workers: int) -> Topology:
  """Two neighbours for each worker: `i - 1` and `i + 1`, with weights 1/3.

  Symmetric. From 3 workers on, the spectral gap is `2/3 (1 - cos(2 pi /
  workers))`, about `13 / workers**2`: cheap in each step, slow to agree.

  Args:
    workers: any number, 1 or more.

  Raises:
    TypeError: if `workers` is not an integer.
    ValueError: if it is less than 1.

  Example:
    >>> ring(8)
    Topology('ring', workers=8, degree=2, period=1, spectral_gap=0.1953)
  """
  workers = count('ring', workers=workers)
  return uniform('ring', shifted(workers, [1, -1]))


def complete(workers: int) -> Topology:
  """Everyone is everyone's neighbour, with weights `1 / workers`.

  Symmetric; the spectral gap is 1: one round of it is the exact mean. As an
  all-reduce it would cost less: see `decopt.all_reduce`.

  Args:
    workers: any number, 1 or more.

  Raises:
    TypeError: if `workers` is not an integer.
    ValueError: if it is less than 1.

  Example:
    >>> complete(8)
    Topology('complete', workers=8, degree=7, period=1, spectral_gap=1)
  """
  workers = count('complete', workers=workers)
  return uniform('complete', shifted(workers, range(1, workers)))


def star(workers: int) -> Topology:
  """Worker 0 is the neighbour of all others, which have no other neighbour.

  Symmetric, with Metropolis-Hastings weights `1 / workers` on every link; the
  spectral gap is `1 / workers`.

  Args:
    workers: any number, 1 or more.

  Raises:
    TypeError: if `workers` is not an integer.
    ValueError: if it is less than 1.

  Example:
    >>> star(8)
    Topology('star', workers=8, degree=7, period=1, spectral_gap=0.125)
  """
  workers = count('star', workers=workers)
  links = np.zeros((workers, workers), bool)
  links[0, 1:] = links[1:, 0] = True
  return metropolis_hastings('star', links)


def torus(rows: int, columns: int) -> Topology:
  """A grid whose opposite edges are joined: four neighbours, weights 1/5.

  Worker `r * columns + c` is in row `r` and column `c`. Symmetric; with sides
  of 3 or more the spectral gap is `2/5 (1 - cos(2 pi / longer side))`.

  Args:
    rows: any number, 1 or more; with 1 or 2 rows there are fewer neighbours.
    columns: likewise; the number of workers is `rows * columns`.

  Raises:
    TypeError: if a side is not an integer.
    ValueError: if a side is less than 1.

  Example:
    >>> torus(3, 4)
    Topology('torus', workers=12, degree=4, period=1, spectral_gap=0.4)
  """
  rows = count('torus', rows=rows)
  columns = count('torus', columns=columns)
  along_columns = np.kron(shifted(rows, [1, -1]), np.eye(columns, dtype=bool))
  along_rows = np.kron(np.eye(rows, dtype=bool), shifted(columns, [1, -1]))
  return uniform('torus', along_columns | along_rows)


def hypercube(workers: int) -> Topology:
  """Neighbours differ in one bit of their number; `d` of them, for `2**d`.

  Symmetric, with weights `1 / (d + 1)`; the spectral gap is `2 / (d + 1)`.

  Args:
    workers: a power of two.

  Raises:
    TypeError: if `workers` is not an integer.
    ValueError: if it is not a power of two, with those that are nearest.

  Example:
    >>> hypercube(8)
    Topology('hypercube', workers=8, degree=3, period=1, spectral_gap=0.5)
  """
  workers = count('hypercube', workers=workers)
  if workers & (workers - 1):
    above = 1 << workers.bit_length()
    raise ValueError(
      f'hypercube needs a power of two as workers, but got {workers}. Use '
      f'hypercube({above // 2}) or hypercube({above}); or, for any number and '
      f'as quick to agree, exponential({workers}).'
    )
  numbers = np.arange(workers)
  differ = numbers[:, None] ^ numbers
  return uniform('hypercube', np.bitwise_count(differ) == 1)


def exponential(workers: int) -> Topology:
  """Worker `i` sends to `i + 1`, `i + 2`, `i + 4`, ... around the ring.

  Directed, so not symmetric. There are `d = ceil(log2(workers))` neighbours,
  with weights `1 / (d + 1)`; the spectral gap is `2 / (d + 1)` for an even
  number of workers, and larger for an odd one.

  Args:
    workers: any number, 1 or more.

  Raises:
    TypeError: if `workers` is not an integer.
    ValueError: if it is less than 1.

  Example:
    >>> exponential(8)
    Topology('exponential', workers=8, degree=3, period=1, spectral_gap=0.5)

  References:
    Ying et al., `Exponential Graph is Provably Efficient for Decentralized Deep
    Training <https://arxiv.org/abs/2110.13363>`_, 2021.
  """
  workers = count('exponential', workers=workers)
  return uniform('exponential', shifted(workers, _powers_of_two(workers)))


def one_peer_exponential(workers: int) -> Topology:
  """In round `t` of a period, worker `i` sends to `i + 2**t` and to no other.

  Directed, with weights 1/2 and a period of `d = ceil(log2(workers))` rounds.
  For `workers = 2**d` one period averages exactly: the spectral gap is 1. One
  message per step, whatever the number of workers.

  Args:
    workers: any number, 1 or more.

  Raises:
    TypeError: if `workers` is not an integer.
    ValueError: if it is less than 1.

  Example:
    >>> topology = one_peer_exponential(8)
    >>> topology.period, topology.degree, topology.spectral_gap()
    (3, 1, 1.0)

  References:
    Ying et al., `Exponential Graph is Provably Efficient for Decentralized Deep
    Training <https://arxiv.org/abs/2110.13363>`_, 2021.
  """
  workers = count('one_peer_exponential', workers=workers)
  rounds = [[offset] for offset in _powers_of_two(workers)] or [[]]
  return uniform(
    'one_peer_exponential',
    np.stack([shifted(workers, offsets) for offsets in rounds]),
  )


def metropolis(graph) -> Topology:
  r"""Any undirected networkx graph, with Metropolis-Hastings weights.

  .. math::

    W_{ij} = \frac{1}{1 + \max(d_i, d_j)}, \qquad
    W_{ii} = 1 - \sum_{j \neq i} W_{ij}

  for neighbours :math:`i, j` of degrees :math:`d_i, d_j`. Symmetric and doubly
  stochastic for every graph, regular or not. Workers are numbered as the nodes
  are sorted, or in order of insertion if they cannot be sorted.
  Attributes of links, double links and links from a node to itself are ignored.
  A graph in several pieces is accepted; see `Topology.is_connected`.

  Args:
    graph: a `networkx.Graph`; its `name` becomes the name of the topology.

  Raises:
    TypeError: if `graph` is directed, or no networkx graph.
    ValueError: if it has no nodes.

  Example:
    >>> import networkx
    >>> metropolis(networkx.petersen_graph())
    Topology('Petersen Graph', workers=10, degree=3, period=1, spectral_gap=0.5)

  References:
    Xiao et al., Distributed Average Consensus with Least-Mean-Square Deviation,
    2007.
  """
  import networkx  # slow to import, and only needed here

  if not isinstance(graph, networkx.Graph):
    raise TypeError(
      f'metropolis needs a networkx.Graph, but got a {type(graph).__name__}. '
      'Of an adjacency matrix make one by networkx.from_numpy_array(matrix).'
    )
  if graph.is_directed():
    raise TypeError(
      'metropolis needs an undirected graph, but got a '
      f'{type(graph).__name__}. Use graph.to_undirected(), or give weights '
      'whose columns sum to 1 to decopt.Topology, for push-sum.'
    )
  if not len(graph):
    raise ValueError(
      'metropolis got a graph without nodes; it needs 1 or more.'
    )
  links = networkx.to_numpy_array(graph, _in_order(graph), weight=None) > 0
  np.fill_diagonal(links, False)
  return metropolis_hastings(graph.name or 'metropolis', links)


def uniform(name: str, links: np.ndarray) -> Topology:
  """Equal weights, for graphs in which all workers have as many neighbours."""
  weights = links | np.eye(links.shape[-1], dtype=bool)
  return Topology(weights / weights.sum(axis=-1, keepdims=True), name)


def metropolis_hastings(name: str, links: np.ndarray) -> Topology:
  """Weights 1 / (1 + larger degree) on undirected links; the rest stays."""
  degrees = links.sum(axis=1)
  weights = links / (1 + np.maximum(degrees[:, None], degrees))
  np.fill_diagonal(weights, 1 - weights.sum(axis=1))
  return Topology(weights, name)


def shifted(workers: int, offsets: Iterable[int]) -> np.ndarray:
  """Links from each worker `i` to `i + offset`, around the ring."""
  links = np.zeros((workers, workers), bool)
  senders = np.arange(workers)
  for offset in offsets:
    links[(senders + offset) % workers, senders] = True
  return links


def count(graph: str, **argument) -> int:
  """Checks the one argument given, a number of workers."""
  [(name, value)] = argument.items()
  try:
    number = operator.index(value)
  except TypeError:
    raise TypeError(
      f'{graph} needs an integer as {name}, but got {value!r}.'
    ) from None
  if number < 1:
    raise ValueError(f'{graph} needs 1 or more as {name}, but got {number}.')
  return number


def _powers_of_two(limit: int) -> list[int]:
  """1, 2, 4, ... below a limit, in integers: logarithms round."""
  return [1 << t for t in range((limit - 1).bit_length())]


def _in_order(graph) -> list:
  try:
    return sorted(graph)
  except TypeError:  # nodes of several kinds have no order but their own
    return list(graph)
