"""Who hears whom, read off a networkx graph or a topology."""

import numpy as np

from decopt.topology import Topology


def links_of(
  graph, rule: str, *, directed: bool = False
) -> tuple[str, np.ndarray]:
  """The name for a rule's topology, and bool `[period, workers, workers]`.

  Args:
    graph: a networkx graph, in which an edge (u, v) lets u send to v, or a
      topology, of which only the links are read.
    rule: the name of the function that asks, for errors and names.
    directed: whether links may go one way.

  Raises:
    TypeError: if `graph` is neither, or a directed networkx graph although
      links must go both ways.
    ValueError: if it has no workers, or is a topology with one-way links
      although they must go both ways.
  """
  label = rule.replace('_', ' ')
  if isinstance(graph, Topology):
    if not directed:
      _check_two_way(graph, rule)
    return f'{graph.name}, {label}', graph.links
  import networkx  # slow to import, and only needed here

  if not isinstance(graph, networkx.Graph):
    raise TypeError(
      f'{rule} needs a networkx.Graph or a Topology, but got a '
      f'{type(graph).__name__}. Of an adjacency matrix make a graph by '
      'networkx.from_numpy_array(matrix).'
    )
  if graph.is_directed() and not directed:
    raise TypeError(
      f'{rule} needs an undirected graph, but got a {type(graph).__name__}. '
      'Use graph.to_undirected(), or decopt.column_stochastic(graph), for '
      'push-sum.'
    )
  if not len(graph):
    raise ValueError(f'{rule} got a graph without nodes; it needs 1 or more.')
  sends = networkx.to_numpy_array(graph, _in_order(graph), weight=None) > 0
  np.fill_diagonal(sends, False)
  return graph.name or label, sends.T[None]


def check_topology(function: str, topology) -> None:
  """Raises the error that says how to make a topology, if it is none."""
  if not isinstance(topology, Topology):
    raise TypeError(
      f'{function} needs a decopt.Topology, but got a '
      f'{type(topology).__name__}. Of a networkx graph make one by '
      'decopt.metropolis(graph).'
    )


def are_two_way(links: np.ndarray) -> bool:
  """Whether all who hear another are heard by it, in each round."""
  return bool((links == links.swapaxes(-1, -2)).all())


def _check_two_way(topology: Topology, rule: str) -> None:
  one_way = topology.links & ~topology.links.swapaxes(1, 2)
  if one_way.any():
    t, receiver, sender = np.argwhere(one_way)[0].tolist()
    raise ValueError(
      f'{rule} needs links that go both ways, but in round {t} of topology '
      f'{topology.name!r} worker {receiver} hears worker {sender} and is not '
      f'heard by it. Use decopt.{rule}(decopt.symmetrized(topology)), or '
      'decopt.column_stochastic(topology), for push-sum.'
    )


def _in_order(graph) -> list:
  try:
    return sorted(graph)
  except TypeError:  # nodes of several kinds have no order but their own
    return list(graph)
