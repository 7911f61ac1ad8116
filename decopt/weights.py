"""From a graph to mixing weights.

`metropolis` gives weights to any undirected graph; the constructors of
`decopt.graphs` use `uniform` and `metropolis_hastings`. All of these are
doubly stochastic where it is said: rows sum to 1, so that agreement lasts, and
columns sum to 1, so that the mean over workers is preserved.
"""

import numpy as np

from decopt.topology import Topology


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


def _in_order(graph) -> list:
  try:
    return sorted(graph)
  except TypeError:  # nodes of several kinds have no order but their own
    return list(graph)
