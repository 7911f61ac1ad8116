"""The topologies that a config can name, built for a number of workers.

A new graph is one row of `TOPOLOGIES`: a function of the number of workers,
with further parameters for whatever ``config.topology`` may say about it. The
field ``config.topology.weights`` is for all of them: it names a rule of
`experiments.weight_rules`, which gives the links of any graph other weights.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import decopt
from experiments import calls
from experiments import errors
from experiments import sections
from experiments import weight_rules

#: Fields of ``config.topology`` that are not arguments of the graph.
RESERVED = ('weights',)


def grid(
  workers: int, rows: int | None = None, columns: int | None = None
) -> decopt.Topology:
  """Returns a grid of all workers, as near to a square as they allow."""
  return decopt.grid(*_sides('grid', workers, rows, columns))


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
  return decopt.torus(*_sides('torus', workers, rows, columns))


def two_level(
  workers: int, machines: int | None = None, between: str = 'ring'
) -> decopt.Topology:
  """Returns machines whose workers average exactly, and gossip between them.

  Args:
    workers: in the whole graph, as many on each machine.
    machines: their number; by default the largest divisor of ``workers`` up to
      its root.
    between: the topology of the machines, such as ``'torus(rows=2)'``.
  """
  call = calls.parse_one(between)
  machines = nearest_to_square(workers) if machines is None else machines
  if isinstance(machines, int) and (machines < 1 or workers % machines):
    raise ValueError(
      f'{workers} workers do not divide over {machines} machines; use '
      f'{nearest_to_square(workers)} machines'
    )
  return decopt.two_level(
    machines,
    workers // machines,
    between=lambda number: build(call.section, number),
  )


def alternate(workers: int, of: str | Sequence[str]) -> decopt.Topology:
  """Returns topologies taken in turn, all of their rounds each time.

  Args:
    workers: in each of them.
    of: which: ``('ring', 'star')``, or ``'ring,star'``.
  """
  texts = of if isinstance(of, (list, tuple)) else [of]
  named = [call for text in texts for call in calls.parse(text)]
  return decopt.alternate(*(build(call.section, workers) for call in named))


def from_file(
  workers: int, path: str, kind: str | None = None
) -> decopt.Topology:
  """Returns the topology that a file describes.

  Args:
    workers: that it must have.
    path: of a file that `decopt.load_topology` reads.
    kind: of what is in it, where that has to be said.
  """
  topology = load(path, kind)
  if topology.workers != workers:
    raise ValueError(
      f"'{path}' has {topology.workers} workers, not {workers}; set workers to "
      f'{topology.workers}'
    )
  return topology


def load(path: str, kind: str | None = None) -> decopt.Topology:
  """Reads a topology from a file; what is wrong with it is a `UserError`."""
  if not isinstance(path, str):
    raise errors.UserError(
      f'config.topology.path is {path!r}, and not the name of a file'
    )
  try:
    return decopt.load_topology(path, kind=kind)
  except OSError as error:
    text = f"cannot read '{path}': {error.strerror}"
    raise errors.UserError(text if error.strerror else str(error)) from error
  except ValueError as error:
    raise sections.rejected('topology', error) from error


#: name -> (function of the number of workers, one line for ``--list``)
TOPOLOGIES = {
  'ring': (decopt.ring, 'two neighbours, on a circle; directed (only one)'),
  'chain': (decopt.chain, 'a ring with one link cut'),
  'grid': (grid, 'up to four neighbours; rows, columns'),
  'torus': (torus, 'four neighbours on a grid without borders; rows, columns'),
  'star': (decopt.star, 'everyone with worker 0'),
  'binary_tree': (decopt.binary_tree, 'one parent and up to two children'),
  'hypercube': (
    decopt.hypercube,
    'log2(workers) neighbours; workers must be a power of two',
  ),
  'complete': (decopt.complete, 'everyone with everyone'),
  'exponential': (
    decopt.exponential,
    'sends to about log2(workers), at distances 1, 2, 4, ...; symmetric',
  ),
  'one_peer_exponential': (
    decopt.one_peer_exponential,
    'sends to one a step, at distance 1, then 2, then 4, ...; symmetric',
  ),
  'base_graph': (
    decopt.base_graph,
    'exact after a few rounds, for any number; degree (in a round)',
  ),
  'round_robin': (decopt.round_robin, 'a tournament: everyone meets everyone'),
  'random_matchings': (
    decopt.random_matchings,
    'random pairs each step; rounds (until they repeat), seed',
  ),
  'erdos_renyi': (
    decopt.erdos_renyi,
    'each link with a probability; probability, seed',
  ),
  'random_regular': (
    decopt.random_regular,
    'random, but as many neighbours for each; degree, seed',
  ),
  'expander': (
    decopt.expander,
    'well connected at a fixed degree; degree, seed',
  ),
  'watts_strogatz': (
    decopt.watts_strogatz,
    'a small world: a circle with shortcuts; neighbours, probability, seed',
  ),
  'barabasi_albert': (
    decopt.barabasi_albert,
    'few hubs, many leaves; links (of each newcomer), seed',
  ),
  'random_out_degree': (
    decopt.random_out_degree,
    'each sends to random others, for push-sum (sgp); degree, seed',
  ),
  'davis_social': (
    decopt.davis_social,
    '32 women and parties that they went to',
  ),
  'two_level': (
    two_level,
    'exact inside of machines, gossip between them; machines, between',
  ),
  'alternate': (alternate, 'several in turn; of (such as ring,star)'),
  'file': (from_file, 'from .npy, .csv or .json; path, kind'),
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
  topology = sections.call(
    'topology',
    name,
    function,
    sections.arguments(section, RESERVED),
    **{next(iter(sections.parameters(function))): workers},
  )
  if topology.workers != workers:
    raise errors.UserError(
      f"topology '{name}' has {topology.workers} workers but config.workers is "
      f'{workers}'
    )
  rule = section.get('weights')
  return topology if rule is None else weight_rules.apply(topology, rule)


def own_number(section: Mapping[str, Any]) -> int | None:
  """Returns the number of workers of a topology that comes with one."""
  name = section['name']
  if name == 'file' and 'path' in section:
    return load(section['path'], section.get('kind')).workers
  if name not in TOPOLOGIES:
    return None
  first, *_ = sections.parameters(TOPOLOGIES[name][0]).values()
  return None if first.default is first.empty else first.default


def torus_sides(fields: Mapping[str, Any]) -> tuple[int, int] | None:
  """Returns rows and columns if the workers of a config are on a torus."""
  section = fields['topology']
  if section['name'] != 'torus':
    return None
  rows, columns = section.get('rows'), section.get('columns')
  return _sides('torus', fields['workers'], rows, columns)


def nearest_to_square(workers: int) -> int:
  """Returns the largest divisor of ``workers`` that is at most its root.

  Example:
    >>> [nearest_to_square(workers) for workers in (1, 7, 12, 16)]
    [1, 1, 3, 4]
  """
  divisors = range(1, math.isqrt(workers) + 1)
  return max(side for side in divisors if workers % side == 0)


def _sides(graph, workers, rows, columns) -> tuple[int, int]:
  if rows is None:
    rows = workers // columns if columns else nearest_to_square(workers)
  if columns is None:
    columns = workers // rows if rows else 0
  if rows * columns != workers:
    square = nearest_to_square(workers)
    raise ValueError(
      f'a {graph} of {rows} rows and {columns} columns has {rows * columns} '
      f'workers, not {workers}; leave out rows and columns, or use {square} '
      f'rows and {workers // square} columns'
    )
  return rows, columns
