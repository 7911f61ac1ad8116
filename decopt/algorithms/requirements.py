"""What an algorithm needs of its mixing weights, checked when it is built."""

from decopt import topology as topology_lib


def require_averaging(algorithm: str, topology: topology_lib.Topology) -> None:
  """Checks that repeated mixing takes every worker to the mean of all.

  Args:
    algorithm: whose requirement this is.
    topology: must be doubly stochastic and connected over its period.

  Raises:
    ValueError: with the reason, and what to use instead.
  """
  if not topology.is_doubly_stochastic():
    raise ValueError(
      f'{algorithm} needs weights whose rows and columns sum to 1, but those '
      f'of topology {topology.name!r} do not: the mean over workers would '
      'drift. Use metropolis(graph), which gives such weights to any '
      'undirected graph, or exponential(workers) for a directed one.'
    )
  if not topology.is_connected():
    raise ValueError(
      f'{algorithm} needs a connected graph, but topology '
      f'{topology.name!r} falls into parts that never exchange anything. '
      'Add edges between the parts, or use ring(workers), the connected '
      'graph with the fewest neighbours.'
    )
