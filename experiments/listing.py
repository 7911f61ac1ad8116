"""What a config can name, for ``--list``."""

import textwrap

from experiments import algorithms
from experiments import optimizers
from experiments import topologies
from experiments import workloads
from experiments.workloads import partition


def listing() -> str:
  """Returns all names, a line each, under the field that takes them."""
  lines = []
  for field, table in (
    ('algorithm.name', algorithms.ALGORITHMS),
    ('topology.name', topologies.TOPOLOGIES),
    ('workload.name', workloads.WORKLOADS),
  ):
    lines.append(f'--config.{field}')
    width = max(len(name) for name in table)
    for name, (_, description) in table.items():
      lines.append(f'  {name:{width}}  {description}')
    lines.append('')
  for field, names in (
    ('workload.partition', partition.PARTITIONS),
    ('optimizer.name', optimizers.optimizers()),
    ('optimizer.schedule.name', optimizers.schedules()),
  ):
    lines.append(f'--config.{field}')
    lines += textwrap.wrap(
      ', '.join(names), 78, initial_indent='  ', subsequent_indent='  '
    )
    lines.append('')
  return '\n'.join(lines).rstrip()
