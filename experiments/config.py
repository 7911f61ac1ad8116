"""The fields of an experiment's config, and what is wrong with one.

A file in ``configs/`` starts from `default` and changes fields. The sections
``workload``, ``topology``, ``algorithm``, ``faults``, ``optimizer`` and
``optimizer.schedule`` each name a function and may hold any of its arguments,
so they take new fields; everything else is fixed, and a typing error is
answered with the closest name.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import ml_collections

from experiments import algorithms
from experiments import errors
from experiments import faults
from experiments import optimizers
from experiments import sections
from experiments import step
from experiments import topologies
from experiments import workloads

LAYOUTS = ('auto', 'simulation', 'mesh')
BATCH_STATISTICS = ('local', 'averaged')

#: Open sections: they take arguments of the function that they name.
SECTIONS = ('workload', 'topology', 'algorithm', 'faults', 'optimizer')


def default() -> ml_collections.ConfigDict:
  """Returns the config that all others start from."""
  config = ml_collections.ConfigDict()

  # What is learned, and how the training set is divided: `iid`, `dirichlet`
  # with `alpha`, `by_label`, or `sizes` with `sizes`.
  config.workload = {'name': 'digits', 'partition': 'iid'}
  config.workers = 8
  config.topology = {'name': 'ring'}
  config.algorithm = {'name': 'dsgd'}
  config.faults = {'name': 'none'}  # of links and workers
  config.optimizer = {
    'name': 'sgd',
    'learning_rate': 0.1,
    'clip_norm': 0.0,  # largest norm of what the optimizer gets; 0: any
    'schedule': {'name': 'constant'},
  }

  config.batch_size = 32  # examples per worker and step
  config.steps = 1000
  config.seed = 0  # initial parameters, partition, order of the examples

  # In steps. The last step is logged, evaluated and saved in any case, and 0
  # means only there.
  config.log_every = 10
  config.eval_every = 100
  config.checkpoint_every = 100

  # How workers are executed. `auto` is a mesh where jax sees several
  # accelerators, and a simulation on one device otherwise.
  config.layout = 'auto'
  config.devices = 0  # of a mesh; 0: as many as fit
  config.gradient_mapping = 'auto'

  # Whose batch statistics the averaged model is evaluated with: each worker's
  # own (the mean of the results is reported), or their average.
  config.batch_statistics = 'local'

  config.lock()
  for section in SECTIONS:
    config[section].unlock()
  return config


def check_overrides(arguments: Iterable[str], flag: str = 'config') -> None:
  """Raises a `UserError` for ``--config.x.y`` that no config can have."""
  for argument in arguments:
    name = argument.lstrip('-').split('=', 1)[0]
    for prefix in (f'{flag}.', f'no{flag}.'):
      if argument.startswith('-') and name.startswith(prefix):
        _check_path(name.removeprefix(prefix))


def _check_path(path: str) -> None:
  head, *rest = path.split('.')
  fields = default().to_dict()
  deepest = 2 if path.startswith('optimizer.schedule.') else 1
  if head in SECTIONS and len(rest) == deepest:
    return
  if head in fields and head not in SECTIONS and not rest:
    return
  same = [key for key in flatten(fields) if key.split('.')[-1] == head]
  if head in SECTIONS and not rest:
    hint = f'; it is a section, as in --config.{path}.name=...'
  elif same:
    hint = f"; did you mean '{same[0]}'?"
  else:
    hint = head not in fields and errors.did_you_mean(head, fields)
  fallback = f'; there are {", ".join(fields)}'
  raise errors.UserError(f"the config has no field '{path}'{hint or fallback}")


def resolve(
  config: ml_collections.ConfigDict, overridden: Iterable[str] = ()
) -> dict[str, Any]:
  """Checks a config and returns it as plain data, as ``config.json`` has it.

  An override of a name drops the arguments that only the replaced choice takes:
  ``--config.optimizer.name=sgd`` on a file with ``adam`` and ``b1`` means sgd
  without ``b1``. Arguments that are themselves overridden stay, and are an
  error if they do not fit.

  Args:
    config: what ``get_config()`` returned, with overrides.
    overridden: paths of the fields given on the command line.

  Raises:
    UserError: for the first field that is out of range.
  """
  if not isinstance(config, ml_collections.ConfigDict):
    raise errors.UserError(
      f'get_config() returned {type(config).__name__}; start from '
      'experiments.config.default() and return it'
    )
  try:
    fields = json.loads(json.dumps(config.to_dict()))
  except TypeError as error:
    raise errors.UserError(f'a config is plain data, but {error}') from error
  _check_structure(fields)
  _drop_leftovers(fields, set(overridden))
  for name in ('workers', 'batch_size', 'steps', 'log_every'):
    _require_integer(fields, name, least=1)
  for name in ('eval_every', 'checkpoint_every', 'devices', 'seed'):
    _require_integer(fields, name, least=0)
  _require_choice(fields, 'layout', LAYOUTS)
  _require_choice(fields, 'gradient_mapping', step.MAPPINGS)
  _require_choice(fields, 'batch_statistics', BATCH_STATISTICS)
  return fields


def flatten(fields: Mapping[str, Any], prefix: str = '') -> dict[str, Any]:
  """Returns nested fields under dotted names.

  Example:
    >>> flatten({'steps': 5, 'topology': {'name': 'ring'}})
    {'steps': 5, 'topology.name': 'ring'}
  """
  flat = {}
  for key, value in fields.items():
    if isinstance(value, Mapping):
      flat |= flatten(value, f'{prefix}{key}.')
    else:
      flat[f'{prefix}{key}'] = value
  return flat


def differences(
  saved: Mapping[str, Any], given: Mapping[str, Any]
) -> list[str]:
  """Returns a phrase for each field in which two configs differ.

  A field that one of them lacks has its default there: what was saved before
  the field existed is still the same run.
  """
  defaults = flatten(default().to_dict())
  saved, given = defaults | flatten(saved), defaults | flatten(given)
  phrases = []
  for key in sorted(saved.keys() | given.keys()):
    there, here = saved.get(key, 'absent'), given.get(key, 'absent')
    if there != here:
      phrases.append(f'{key} is {there} there and {here} here')
  return phrases


def _check_structure(fields: Mapping[str, Any]) -> None:
  """Answers fields that a config file has added or left out."""
  expected = default().to_dict()
  for key in fields:
    if key not in expected:
      hint = errors.did_you_mean(key, expected)
      raise errors.UserError(f"the config has no field '{key}'{hint}")
  if 'name' in fields.get('optimizer', {}):
    if 'learning_rate' not in fields['optimizer']:
      raise errors.UserError(
        "the config lacks the field 'optimizer.learning_rate'; start from "
        'experiments.config.default()'
      )
  for key, value in expected.items():
    section = key in SECTIONS
    if key not in fields or (section and 'name' not in fields[key]):
      missing = f'{key}.name' if section else key
      raise errors.UserError(
        f"the config lacks the field '{missing}' (default: {value}); start "
        'from experiments.config.default()'
      )


def _functions(fields: Mapping[str, Any]):
  """Yields (path, section, function, reserved fields) for known names."""
  optimizer = fields['optimizer']
  schedule = optimizer.get('schedule', {})
  for path, section, table, reserved in (
    (
      'topology',
      fields['topology'],
      topologies.TOPOLOGIES,
      topologies.RESERVED,
    ),
    ('algorithm', fields['algorithm'], algorithms.ALGORITHMS, ()),
    ('faults', fields['faults'], faults.FAULTS, ()),
    ('workload', fields['workload'], workloads.WORKLOADS, workloads.RESERVED),
    ('optimizer', optimizer, optimizers.optimizers(), optimizers.RESERVED),
    ('optimizer.schedule', schedule, optimizers.schedules(), ()),
  ):
    entry = table.get(section.get('name'))
    if entry is not None:
      function = entry[0] if isinstance(entry, tuple) else entry
      yield path, section, function, reserved


def _drop_leftovers(fields: dict[str, Any], overridden: set[str]) -> None:
  for path, section, function, reserved in _functions(fields):
    if f'{path}.name' in overridden:
      takes = {'name', *sections.parameters(function), *reserved}
      for key in [key for key in section if key not in takes]:
        if f'{path}.{key}' not in overridden:
          del section[key]
  workload = fields['workload']
  for key, partition in (('alpha', 'dirichlet'), ('sizes', 'sizes')):
    if key not in workload or workload.get('partition') == partition:
      continue
    if f'workload.{key}' in overridden or (
      'workload.partition' not in overridden
    ):
      raise errors.UserError(
        f'config.workload.{key} is for the partition {partition}, but '
        f"config.workload.partition is '{workload.get('partition')}'"
      )
    del workload[key]


def _require_integer(fields: Mapping[str, Any], name: str, least: int) -> None:
  value = fields[name]
  if isinstance(value, bool) or not isinstance(value, int) or value < least:
    raise errors.UserError(
      f'config.{name} is {value!r}; it must be an integer of at least {least}'
    )


def _require_choice(
  fields: Mapping[str, Any], name: str, choices: tuple[str, ...]
) -> None:
  if fields[name] not in choices:
    hint = errors.did_you_mean(fields[name], choices)
    raise errors.UserError(
      f"config.{name} is '{fields[name]}'{hint or ';'} it must be one of "
      f'{", ".join(choices)}'
    )
