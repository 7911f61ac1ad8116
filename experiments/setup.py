"""From names to objects: everything that a config describes, built once."""

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import optax

import decopt
from experiments import algorithms
from experiments import errors
from experiments import layouts
from experiments import mappings
from experiments import optimizers
from experiments import sections
from experiments import step
from experiments import topologies
from experiments import workloads
from experiments.workloads import partition
from experiments.workloads import sampling

#: Most steps in one dispatch to the device.
MOST_STEPS_AT_ONCE = 32


@dataclasses.dataclass(frozen=True)
class Experiment:
  """What a run is made of.

  Attributes:
    fields: the resolved config.
    workload: data and model.
    order: which examples each worker sees at each step.
    optimizer: the whole algorithm, as an optax chain.
    layout: where the workers run.
    program: the compiled steps, and the form in which they keep the state.
    chunk: steps in one dispatch. It divides all intervals, so one program is
      compiled and where a dispatch ends depends on the step alone.
  """

  fields: Mapping[str, Any]
  workload: workloads.Workload
  order: sampling.BatchOrder
  optimizer: optax.GradientTransformation
  layout: layouts.Layout
  program: mappings.Program
  chunk: int

  @property
  def workers(self) -> int:
    return self.fields['workers']

  @functools.cached_property
  def parameters(self) -> Any:
    """Shapes and dtypes of one worker's parameters."""
    return step.one_worker(self.workload)[0]

  @functools.cached_property
  def bytes_sent(self) -> list[float]:
    """Bytes sent until after each step, mean over workers."""
    horizon = self.fields['steps']
    traffic = decopt.traffic(
      self.optimizer, self.parameters, self.workers, steps=horizon
    )
    return np.cumsum(np.asarray(traffic.bytes, np.float64)).tolist()

  def describe(self) -> list[str]:
    """Returns two lines that say what this is, and how it is executed."""
    fields, size = self.fields, self.parameters_per_worker
    workload, optimizer = fields['workload'], fields['optimizer']
    how = _phrase(fields['algorithm'])
    if algorithms.needs_topology(fields['algorithm']['name']):
      how += f' on {_phrase(fields["topology"])}'
    if fields['faults']['name'] != 'none':
      how += f' with {_phrase(fields["faults"])}'
    return [
      f'{_phrase(workload)}: {self.workers} workers, {how}, '
      f'{optimizer["name"]} {optimizer["learning_rate"]:g}',
      f'{fields["steps"]:,} steps of {fields["batch_size"]} examples a worker, '
      f'{size:,} parameters; {self.layout.description}, gradients '
      f'{self.program.mapping}',
    ]

  def facts(self) -> dict[str, Any]:
    """Returns what a summary says besides metrics."""
    fields = self.fields
    return {
      'workload': fields['workload']['name'],
      'algorithm': fields['algorithm']['name'],
      'workers': self.workers,
      'parameters': self.parameters_per_worker,
      'layout': self.layout.name,
      'devices': self.layout.mesh.size if self.layout.mesh else 1,
      'gradient_mapping': self.program.mapping,
    }

  @property
  def parameters_per_worker(self) -> int:
    leaves = jax.tree.leaves(self.parameters)
    return sum(math.prod(leaf.shape) for leaf in leaves)


def build(fields: Mapping[str, Any]) -> Experiment:
  """Builds what a resolved config describes.

  Raises:
    UserError: for whatever does not exist or does not fit together.
  """
  workers = fields['workers']
  topology = None
  if algorithms.needs_topology(fields['algorithm']['name']):
    topology = topologies.build(fields['topology'], workers)
  adapt = optimizers.build(fields['optimizer'], fields['steps'])
  optimizer = algorithms.build(
    fields['algorithm'], adapt, topology, fields['faults']
  )
  layout = layouts.choose(fields, topologies.torus_sides(fields))
  workload, order = _workload(fields)
  try:
    program = step.make_program(
      workload,
      optimizer,
      workers=workers,
      mesh=layout.mesh,
      mapping=fields['gradient_mapping'],
      batch_size=fields['batch_size'],
      seed=fields['seed'],
    )
  except ValueError as error:
    raise errors.UserError(f'config.{error}') from error
  return Experiment(
    fields, workload, order, optimizer, layout, program, chunk(fields)
  )


def chunk(fields: Mapping[str, Any]) -> int:
  """Returns the steps of one dispatch, see `Experiment`.

  Example:
    >>> chunk(dict(steps=600, log_every=20, eval_every=100, checkpoint_every=0))
    20
  """
  interval = math.gcd(
    fields['steps'],
    fields['log_every'],
    fields['eval_every'],
    fields['checkpoint_every'],
  )
  return layouts.divisor(interval, MOST_STEPS_AT_ONCE)


def _workload(fields: Mapping[str, Any]):
  section = fields['workload']
  name = section['name']
  if name not in workloads.WORKLOADS:
    raise errors.unknown('workload', name, workloads.WORKLOADS)
  factory, _ = workloads.WORKLOADS[name]
  given = sections.arguments(section, workloads.RESERVED)
  workload = sections.call('workload', name, factory, given)
  part_of, seed = section.get('partition', 'iid'), fields['seed']
  if part_of not in partition.PARTITIONS:
    raise errors.unknown('partition', part_of, partition.PARTITIONS)
  try:
    parts = partition.partition(
      workload.labels,
      fields['workers'],
      part_of,
      seed,
      alpha=section.get('alpha'),
      sizes=section.get('sizes'),
    )
    return workload, sampling.BatchOrder(parts, fields['batch_size'], seed)
  except (TypeError, ValueError) as error:
    raise sections.rejected('workload', error) from error


def _phrase(section: Mapping[str, Any]) -> str:
  """Returns ``name (choice, argument value, ...)``."""
  given = [(key, value) for key, value in section.items() if key != 'name']
  choices = [value for _, value in given if isinstance(value, str)]
  numbers = [f'{key} {v}' for key, v in given if not isinstance(v, str)]
  inside = ', '.join(choices + numbers)
  return section['name'] + (f' ({inside})' if inside else '')
