"""Checks of the numbers that graphs are made of, with errors that advise."""

import numbers
import operator


def count(graph: str, *, least: int = 1, **argument) -> int:
  """Checks the one argument given, a whole number, `least` or more."""
  [(name, value)] = argument.items()
  try:
    number = operator.index(value)
  except TypeError:
    raise TypeError(
      f'{graph} needs an integer as {name}, but got {value!r}.'
    ) from None
  if number < least:
    raise ValueError(
      f'{graph} needs {least} or more as {name}, but got {number}.'
    )
  return number


def fraction(graph: str, **argument) -> float:
  """Checks the one argument given, a number from 0 to 1."""
  [(name, value)] = argument.items()
  if not isinstance(value, numbers.Real):
    raise TypeError(
      f'{graph} needs a number from 0 to 1 as {name}, but got {value!r}.'
    )
  if not 0 <= value <= 1:
    raise ValueError(
      f'{graph} needs a number from 0 to 1 as {name}, but got {value}.'
    )
  return float(value)
