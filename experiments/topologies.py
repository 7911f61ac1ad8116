"""The topologies that a config can name, built for a number of workers.

A new graph is one row of `TOPOLOGIES`: a function of the number of workers,
with further parameters for whatever ``config.topology`` may say about it.
"""

import math
from collections.abc import Mapping
from typing import Any

import decopt
from experiments import errors
from experiments import sections


def torus(
  workers: int, rows: int | None = None, columns: int | None = None
) -> decopt.Topology:
  """Returns a torus of all workers, as near to a square as they allow.

  Args:
    workers: in the whole graph.
    rows: of the torus; by default the largest divisor of ``workers`` up to its
      root, or what ``columns`` leaves.
    columns: of the torus; by default what ``rows`` leaves.

  Example:
    >>> torus(12).name == decopt.torus(3, 4).name
    True
  """
  if rows is None:
    rows = workers // columns if columns else nearest_to_square(workers)
  if columns is None:
    columns = workers // rows if rows else 0
  if rows * columns != workers:
    square = nearest_to_square(workers)
    raise ValueError(
      f'a torus of {rows} rows and {columns} columns has {rows * columns} '
      f'workers but config.workers is {workers}; leave out rows and columns, '
      f'or use {square} rows and {workers // square} columns'
    )
  return decopt.torus(rows, columns)


def nearest_to_square(workers: int) -> int:
  """Returns the largest divisor of ``workers`` that is at most its root.

  Example:
    >>> [nearest_to_square(workers) for workers in (1, 7, 12, 16)]
    [1, 1, 3, 4]
  """
  divisors = range(1, math.isqrt(workers) + 1)
  return max(side for side in divisors if workers % side == 0)


#: name -> (function of the number of workers, one line for ``--list``)
TOPOLOGIES = {
  'ring': (decopt.ring, 'two neighbours, on a circle'),
  'complete': (decopt.complete, 'everyone with everyone'),
  'star': (decopt.star, 'everyone with worker 0'),
  'torus': (torus, 'four neighbours on a grid without borders; rows, columns'),
  'hypercube': (
    decopt.hypercube,
    'log2(workers) neighbours; workers must be a power of two',
  ),
  'exponential': (
    decopt.exponential,
    'about log2(workers) neighbours, at distances 1, 2, 4, ...',
  ),
  'one_peer_exponential': (
    decopt.one_peer_exponential,
    'one neighbour a step, at distance 1, then 2, then 4, ...',
  ),
}


def build(section: Mapping[str, Any], workers: int) -> decopt.Topology:
  """Returns the topology that ``config.topology`` describes.

  Raises:
    UserError: for an unknown name or argument, or a graph that does not exist
      for this number of workers.
  """
  name = section['name']
  if name not in TOPOLOGIES:
    raise errors.unknown('topology', name, TOPOLOGIES)
  function, _ = TOPOLOGIES[name]
  first = next(iter(sections.parameters(function)))
  topology = sections.call(
    'topology',
    name,
    function,
    sections.arguments(section),
    **{first: workers},
  )
  if topology.workers != workers:
    raise errors.UserError(
      f"topology '{name}' has {topology.workers} workers but config.workers is "
      f'{workers}'
    )
  return topology
