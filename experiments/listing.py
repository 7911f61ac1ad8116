"""What a config can name, for ``--list``."""

import textwrap
from collections.abc import Iterable, Mapping

from experiments import algorithms
from experiments import faults
from experiments import optimizers
from experiments import topologies
from experiments import weight_rules
from experiments import workloads
from experiments.workloads import partition


def listing() -> str:
  """Returns all names, a line each, under the field that takes them."""
  parts = [
    described(f'--config.{field}', table)
    for field, table in (
      ('algorithm.name', algorithms.ALGORITHMS),
      ('topology.name', topologies.TOPOLOGIES),
      ('topology.weights', weight_rules.WEIGHTS),
      ('faults.name', faults.FAULTS),
      ('workload.name', workloads.WORKLOADS),
    )
  ] + [
    _named(f'--config.{field}', names)
    for field, names in (
      ('workload.partition', partition.PARTITIONS),
      ('optimizer.name', optimizers.optimizers()),
      ('optimizer.schedule.name', optimizers.schedules()),
    )
  ]
  return '\n\n'.join(parts)


def described(heading: str, table: Mapping[str, tuple]) -> str:
  """Returns a heading and a line for each row of a table of names."""
  width = max(len(name) for name in table)
  lines = [f'  {name:{width}}  {text}' for name, (_, text) in table.items()]
  return '\n'.join([heading, *lines])


def _named(heading: str, names: Iterable[str]) -> str:
  """Returns a heading and names that need no description."""
  lines = textwrap.wrap(
    ', '.join(names), 78, initial_indent='  ', subsequent_indent='  '
  )
  return '\n'.join([heading, *lines])
