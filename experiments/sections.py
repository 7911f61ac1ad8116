"""Sections of a config: the name of a function, and arguments for it.

``config.optimizer`` is ``{name: 'sgd', learning_rate: 0.1, momentum: 0.9}``,
and that is the call ``optax.sgd(learning_rate=0.1, momentum=0.9)``. Topologies,
algorithms, schedules and workloads are the same, so there is one way to check a
section (against the signature of the function it names) and to make the call.
"""

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from experiments import errors

#: Parameters of algorithms that are for programs, not for configs.
HIDDEN = ('axis_name', 'schedule')


def arguments(section: Mapping[str, Any], reserved: Collection[str] = ()):
  """Returns a section without its name and without ``reserved`` fields."""
  return {
    key: value
    for key, value in section.items()
    if key != 'name' and key not in reserved
  }


def parameters(function: Callable) -> dict[str, inspect.Parameter]:
  """Returns the parameters of a function by name, without ``**kwargs``."""
  keywords = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
  return {
    name: parameter
    for name, parameter in inspect.signature(function).parameters.items()
    if parameter.kind not in keywords
  }


def check(
  path: str,
  name: str,
  given: Iterable[str],
  function: Callable,
  provided: Collection[str] = (),
) -> None:
  """Raises a `UserError` unless ``function`` can be called from a section.

  Args:
    path: of the section, such as ``'optimizer'``.
    name: that the section gives to ``function``.
    given: names of the arguments in the section.
    function: what will be called.
    provided: parameters that the caller fills in, not the section.
  """
  known = parameters(function)
  allowed = [key for key in known if key not in (*provided, *HIDDEN)]
  for key in given:
    if key not in allowed:
      hint = errors.did_you_mean(key, [*allowed, 'name'])
      takes = f'it takes {", ".join(allowed)}' if allowed else 'it takes none'
      raise errors.UserError(
        f"'{name}' has no argument '{key}' (config.{path}.{key}){hint or ';'} "
        f'{takes}'
      )
  for key in allowed:
    if known[key].default is inspect.Parameter.empty and key not in given:
      raise errors.UserError(
        f"'{name}' needs the argument '{key}': add --config.{path}.{key}=..."
      )


def call(
  path: str,
  name: str,
  function: Callable,
  given: Mapping[str, Any],
  **provided: Any,
) -> Any:
  """Calls ``function`` with a section's arguments and what the caller provides.

  The functions called here check what they are given, so their ``ValueError``
  and ``TypeError`` are about the user's arguments and become one line.
  """
  check(path, name, given, function, provided)
  for key, value in given.items():
    if isinstance(value, str) and _refuses_text(parameters(function)[key]):
      raise errors.UserError(f"config.{path}.{key} is '{value}', not a number")
  try:
    return function(**provided, **given)
  except (TypeError, ValueError) as error:
    raise rejected(path, error) from error


def rejected(path: str, error: Exception) -> errors.UserError:
  """Returns the error of a function that refused a section's arguments."""
  text = str(error)
  if not text.startswith(f'{path}.'):
    text = f'{path}: {text}'
  return errors.UserError(f'config.{text}')


def _refuses_text(parameter: inspect.Parameter) -> bool:
  """Says whether an annotation leaves no room for a string."""
  annotation = str(parameter.annotation)
  untyped = parameter.annotation is inspect.Parameter.empty
  return not untyped and not re.search(r'\bstr\b|\bAny\b', annotation)
