"""Two programs timed in turns, so that what disturbs one disturbs the other.

A machine is never quiet: clocks change, neighbours come and go, memory fills. A
ratio survives this if both sides are timed within the same moment, many times
over, in an order that a steady drift does not favour. So a repetition is ours,
theirs, theirs, ours, and the answer is the median over repetitions.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

#: Runs a program once, to its very end; what it returns is not looked at.
Program = Callable[[], Any]
Clock = Callable[[], float]


class Timing(NamedTuple):
  """What `compare` found.

  Attributes:
    ratio: our time over theirs, the median over repetitions; it is not exactly
      the quotient of the other two.
    seconds: of one run of ours, the median over all.
    reference_seconds: of one run of theirs.
  """

  ratio: float
  seconds: float
  reference_seconds: float


def compare(
  ours: Program,
  theirs: Program,
  *,
  repeats: int,
  clock: Clock = time.perf_counter,
) -> Timing:
  """Times two programs in turns.

  Both should have run once, so that compilation is not timed, and one run
  should take long compared with the clock's resolution and with a dispatch.

  Args:
    ours: the program whose time is the numerator.
    theirs: the program to hold it against.
    repeats: how often to run ours, theirs, theirs, ours.
    clock: seconds as a number that grows.

  Raises:
    ValueError: if ``repeats`` is not positive.

  Example:
    >>> ticks = iter(range(100))
    >>> compare(lambda: 0, lambda: 0, repeats=3, clock=lambda: next(ticks))
    Timing(ratio=1.0, seconds=1.0, reference_seconds=1.0)
  """
  if repeats < 1:
    raise ValueError(f'repeats is {repeats}; timing needs at least 1.')
  ratios, our_times, their_times = [], [], []
  for _ in range(repeats):
    first = seconds(ours, clock)
    second = seconds(theirs, clock)
    third = seconds(theirs, clock)
    fourth = seconds(ours, clock)
    ratios.append((first + fourth) / (second + third))
    our_times += [first, fourth]
    their_times += [second, third]
  return Timing(
    statistics.median(ratios),
    statistics.median(our_times),
    statistics.median(their_times),
  )


def shortest(
  programs: Mapping[str, Program],
  *,
  repeats: int,
  clock: Clock = time.perf_counter,
) -> dict[str, float]:
  """Returns the shortest time of each program, which disturbances only raise.

  Args:
    programs: by name; each should have run once.
    repeats: how often to run all of them in turn.
    clock: seconds as a number that grows.
  """
  times = {name: [] for name in programs}
  for _ in range(repeats):
    for name, program in programs.items():
      times[name].append(seconds(program, clock))
  return {name: min(values) for name, values in times.items()}


def seconds(program: Program, clock: Clock = time.perf_counter) -> float:
  """Runs a program once and returns how long it took."""
  start = clock()
  program()
  return clock() - start
