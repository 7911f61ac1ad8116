"""What the constructors of graphs share: links, and checks of numbers.

Links are bool `[workers, workers]`, or `[period, workers, workers]`; entry
`[receiver, sender]` says that the receiver hears the sender.
"""

import operator
from collections.abc import Iterable

import numpy as np


def shifted(workers: int, offsets: Iterable[int]) -> np.ndarray:
  """Links from each worker `i` to `i + offset`, around the ring."""
  links = np.zeros((workers, workers), bool)
  senders = np.arange(workers)
  for offset in offsets:
    links[(senders + offset) % workers, senders] = True
  return links


def powers_of_two(limit: int) -> list[int]:
  """1, 2, 4, ... below a limit, in integers: logarithms round."""
  return [1 << t for t in range((limit - 1).bit_length())]


def count(graph: str, **argument) -> int:
  """Checks the one argument given, a number of workers."""
  [(name, value)] = argument.items()
  try:
    number = operator.index(value)
  except TypeError:
    raise TypeError(
      f'{graph} needs an integer as {name}, but got {value!r}.'
    ) from None
  if number < 1:
    raise ValueError(f'{graph} needs 1 or more as {name}, but got {number}.')
  return number
