"""Optimizers and schedules of optax by name, with all of their arguments.

  --config.optimizer.name=sgd --config.optimizer.learning_rate=0.1
  --config.optimizer.momentum=0.9 --config.optimizer.nesterov=true

calls ``optax.sgd(0.1, momentum=0.9, nesterov=True)``. A schedule scales the
learning rate over the run:

  --config.optimizer.schedule.name=warmup_cosine_decay_schedule
  --config.optimizer.schedule.warmup_steps=100

`learning_rate` is the schedule's ``peak_value``, or its ``init_value`` where it
has no peak; ``init_value`` below a peak is 0; ``decay_steps`` and
``transition_steps`` are the steps of the run. Each can be given instead.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import optax
import optax.contrib

from experiments import errors
from experiments import sections

#: Fields of ``config.optimizer`` that are not arguments of the optimizer.
RESERVED = ('clip_norm', 'schedule')

#: Need more than gradients and parameters at each step, or another optimizer.
_UNSUITABLE = {
  'dpsgd',  # gradients of single examples
  'lbfgs',  # a line search over the loss
  'momo',  # the loss
  'momo_adam',  # the loss
  'schedule_free',  # an optimizer inside
  'sophia',  # a function that estimates the Hessian
}


def optimizers() -> dict[str, Callable]:
  """Returns the optimizers that a config can name, optax's own first."""
  found = {}
  for module in (optax.contrib, optax):
    for name, function in inspect.getmembers(module, callable):
      helper = inspect.isclass(function) or name.startswith(('_', 'scale_by'))
      if not helper and 'learning_rate' in _parameters(function):
        found[name] = function
  return {name: found[name] for name in sorted(found.keys() - _UNSUITABLE)}


def schedules() -> dict[str, Callable]:
  """Returns the learning-rate schedules that a config can name."""
  found = {'constant': optax.constant_schedule}
  for name, function in inspect.getmembers(optax, inspect.isfunction):
    if {'init_value', 'peak_value'} & _parameters(function).keys():
      found[name] = function
  return found


def build(section: Mapping[str, Any], steps: int):
  """Returns the optax optimizer that ``config.optimizer`` describes.

  Args:
    section: ``name``, ``learning_rate``, ``schedule`` (a section of its own),
      ``clip_norm`` (largest norm of the gradient that the optimizer gets, a
      worker's own or, in all_reduce_sgd, the mean; 0 leaves it alone), and
      arguments of the optimizer.
    steps: of the run; the horizon of schedules.

  Raises:
    UserError: for an unknown name or argument, a missing argument, or a
      learning rate that is negative, infinite or NaN.
  """
  choices = optimizers()
  if section['name'] not in choices:
    raise errors.unknown('optimizer', section['name'], choices)
  _require_rate('optimizer.learning_rate', section['learning_rate'])
  given = sections.arguments(section, (*RESERVED, 'learning_rate'))
  optimizer = sections.call(
    'optimizer',
    section['name'],
    choices[section['name']],
    given,
    learning_rate=learning_rate(section, steps),
  )
  clip_norm = section.get('clip_norm', 0.0)
  if not clip_norm >= 0:
    raise errors.UserError(
      f'config.optimizer.clip_norm is {clip_norm}; it is the largest norm of '
      'a gradient, or 0 for no clipping'
    )
  if clip_norm == 0:
    return optimizer
  return optax.chain(optax.clip_by_global_norm(clip_norm), optimizer)


def learning_rate(section: Mapping[str, Any], steps: int):
  """Returns the learning rate as a number, or as a schedule over ``steps``."""
  rate = section['learning_rate']
  schedule = section.get('schedule') or {'name': 'constant'}
  name, choices = schedule.get('name', 'constant'), schedules()
  if name not in choices:
    raise errors.unknown('schedule', name, choices)
  given = sections.arguments(schedule)
  known = _parameters(choices[name])
  for key, value in given.items():
    if key.endswith('_value'):
      _require_rate(f'optimizer.schedule.{key}', value)
  if name == 'constant':
    sections.check('optimizer.schedule', name, given, lambda: None)
    return rate
  top = 'peak_value' if 'peak_value' in known else 'init_value'
  filled = {'init_value': 0.0, 'decay_steps': steps, 'transition_steps': steps}
  filled |= {top: rate}
  filled = {key: value for key, value in filled.items() if key in known}
  return sections.call(
    'optimizer.schedule', name, choices[name], filled | _integer_keys(given)
  )


def _parameters(function: Callable) -> Mapping[str, inspect.Parameter]:
  try:
    return inspect.signature(function).parameters
  except (TypeError, ValueError):  # builtins without a signature
    return {}


def _integer_keys(given: Mapping[str, Any]) -> dict[str, Any]:
  """Gives boundaries of piecewise schedules back their integer keys."""
  return {
    key: {int(step): scale for step, scale in value.items()}
    if isinstance(value, Mapping)
    else value
    for key, value in given.items()
  }


def _require_rate(path: str, value: Any) -> None:
  number = isinstance(value, (int, float)) and not isinstance(value, bool)
  if not number or not math.isfinite(value) or value < 0:
    raise errors.UserError(
      f'config.{path} is {value!r}; it must be a finite number that is not '
      'negative, for example 0.1'
    )
