"""Checks of single numbers, with errors that advise."""

import operator

import numpy as np


def count(function: str, *, least: int = 1, **argument) -> int:
  """Checks the one argument given, a whole number, `least` or more."""
  [(name, value)] = argument.items()
  try:
    number = operator.index(value)
  except TypeError:
    number = None
  if number is None or isinstance(value, bool):
    raise TypeError(
      f'{function} needs an integer as {name}, but got {value!r}.'
    )
  if number < least:
    raise ValueError(
      f'{function} needs {least} or more as {name}, but got {number}.'
    )
  return number


def number(function: str, what: str = 'a number', **argument) -> float:
  """Checks the one argument given, any real number of Python, numpy or JAX."""
  [(name, value)] = argument.items()
  if isinstance(value, (str, bytes)) or np.ndim(value) or not _is_real(value):
    raise TypeError(f'{function} needs {what} as {name}, but got {value!r}.')
  return float(value)


def fraction(function: str, **argument) -> float:
  """Checks the one argument given, a number from 0 to 1."""
  what = 'a number from 0 to 1'
  value = number(function, what, **argument)
  if not 0 <= value <= 1:
    [name] = argument
    raise ValueError(f'{function} needs {what} as {name}, but got {value:g}.')
  return value


def _is_real(value) -> bool:
  dtype = np.asarray(value).dtype
  return dtype.kind in 'uif' or dtype.name == 'bfloat16'
