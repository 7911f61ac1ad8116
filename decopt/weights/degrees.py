"""Weights that each worker can tell from its neighbours and their degrees."""

import numpy as np

from decopt.topology import Topology
from decopt.weights import reading


def metropolis(graph) -> Topology:
  r"""Metropolis-Hastings weights: symmetric, for every undirected graph.

  .. math::

    W_{ij} = \frac{1}{1 + \max(d_i, d_j)}, \qquad
    W_{ii} = 1 - \sum_{j \neq i} W_{ij}

  for neighbours :math:`i, j` of degrees :math:`d_i, d_j`. Symmetric and doubly
  stochastic for every graph, regular or not. Workers are numbered as the nodes
  are sorted, or in order of insertion if they cannot be sorted.
  Attributes of links, double links and links from a node to itself are ignored.
  A graph in several pieces is accepted; see `Topology.is_connected`.

  Args:
    graph: an undirected `networkx.Graph`, whose `name` becomes the name of the
      topology; or a `Topology`, whose links get these weights in each round.

  Raises:
    TypeError: if `graph` is directed, or neither of these.
    ValueError: if it has no nodes, or is a topology with one-way links.

  Example:
    >>> import networkx
    >>> metropolis(networkx.petersen_graph())
    Topology('Petersen Graph', workers=10, degree=3, period=1, spectral_gap=0.5)

  References:
    Xiao et al., Distributed Average Consensus with Least-Mean-Square Deviation,
    2007.
  """
  return metropolis_hastings(*reading.links_of(graph, 'metropolis'))


def maximum_degree(graph) -> Topology:
  r"""The same weight on every link: one over the largest degree, plus one.

  .. math::

    W_{ij} = \frac{1}{1 + d_{\max}}, \qquad
    W_{ii} = 1 - \frac{d_i}{1 + d_{\max}}

  for neighbours :math:`i, j`, where :math:`d_{\max}` is the largest degree
  :math:`d_i` of the round. Symmetric and doubly stochastic. Slower to agree
  than `metropolis` where few workers have many neighbours.

  Args:
    graph: as for `metropolis`.

  Raises:
    TypeError, ValueError: as for `metropolis`.

  Example:
    >>> maximum_degree(decopt.star(5)).weights[0].diagonal().round(6).tolist()
    [0.2, 0.8, 0.8, 0.8, 0.8]

  References:
    Xiao and Boyd, `Fast linear iterations for distributed averaging
    <https://doi.org/10.1016/j.sysconle.2004.02.022>`_, 2004.
  """
  name, links = reading.links_of(graph, 'maximum_degree')
  largest = links.sum(axis=2).max(axis=1)
  return on_links(name, links / (1 + largest[:, None, None]))


def row_stochastic(graph) -> Topology:
  r"""Each worker takes the plain mean of what it hears and what it holds.

  .. math::

    W_{ij} = \frac{1}{1 + d_i} \quad \text{for } j = i
    \text{ and for each } j \text{ that } i \text{ hears,}

  where :math:`d_i` is how many workers :math:`i` hears. Rows sum to 1, so that
  workers that agree go on agreeing; columns do only if the graph is regular,
  and the mean over workers is else not preserved: they agree on a weighted one.

  Args:
    graph: a networkx graph, directed or not, in which an edge (u, v) lets u
      send to v; or a `Topology`, whose links get these weights in each round.

  Raises:
    TypeError: if `graph` is neither.
    ValueError: if it has no nodes.

  Example:
    >>> row_stochastic(decopt.star(4)).weights[0].sum(axis=0).round(6).tolist()
    [1.75, 0.75, 0.75, 0.75]

  References:
    DeGroot, Reaching a Consensus, 1974.
  """
  name, links = reading.links_of(graph, 'row_stochastic', directed=True)
  return uniform(name, links)


def column_stochastic(graph) -> Topology:
  r"""Each worker splits what it holds evenly among its listeners and itself.

  .. math::

    W_{ij} = \frac{1}{1 + d_j} \quad \text{for } i = j
    \text{ and for each } i \text{ that } j \text{ sends to,}

  where :math:`d_j` is to how many :math:`j` sends. Columns sum to 1, so that
  the sum over workers is preserved, for any directed graph: these are the
  weights of push-sum. A worker need not know how many it hears.

  Args:
    graph: as for `row_stochastic`.

  Raises:
    TypeError, ValueError: as for `row_stochastic`.

  Example:
    >>> import networkx
    >>> graph = networkx.DiGraph([(0, 1), (1, 2), (2, 0), (0, 2)])
    >>> column_stochastic(graph).weights[0][:, 0].round(6).tolist()
    [0.333333, 0.333333, 0.333333]

  References:
    Kempe et al., Gossip-Based Computation of Aggregate Information, 2003.
  """
  name, links = reading.links_of(graph, 'column_stochastic', directed=True)
  return uniform_columns(name, links)


def uniform(name: str, links: np.ndarray) -> Topology:
  """Equal weights in each row: for graphs of equal degrees doubly stochastic.

  Args:
    name: of the topology.
    links: bool `[workers, workers]` or `[period, workers, workers]`; entry
      `[receiver, sender]` says that the receiver hears the sender.
  """
  weights = links | np.eye(links.shape[-1], dtype=bool)
  return Topology(weights / weights.sum(axis=-1, keepdims=True), name)


def uniform_columns(name: str, links: np.ndarray) -> Topology:
  """Equal weights in each column, which sums to 1: for push-sum.

  Args:
    name: of the topology.
    links: as for `uniform`.
  """
  weights = links | np.eye(links.shape[-1], dtype=bool)
  return Topology(weights / weights.sum(axis=-2, keepdims=True), name)


def metropolis_hastings(name: str, links: np.ndarray) -> Topology:
  """Weights 1 / (1 + larger degree) on undirected links; the rest stays.

  Args:
    name: of the topology.
    links: symmetric, and as for `uniform`.
  """
  degrees = links.sum(axis=-1)
  larger = np.maximum(degrees[..., :, None], degrees[..., None, :])
  return on_links(name, links / (1 + larger))


def on_links(name: str, weights: np.ndarray) -> Topology:
  """Given weights on links; what is left of 1 in each row, workers keep.

  Args:
    name: of the topology.
    weights: `[workers, workers]` or `[period, workers, workers]`, 0 on the
      diagonal, with rows that sum to at most 1 up to rounding.
  """
  kept = np.maximum(1 - weights.sum(axis=-1, keepdims=True), 0)
  return Topology(weights + kept * np.eye(weights.shape[-1]), name)
