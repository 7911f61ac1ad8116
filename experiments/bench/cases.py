"""A case: something decopt does, and the same written by hand.

`measure` first makes sure that both compute the same numbers, because a ratio
of times means nothing otherwise, then lets the hand-written forms decide among
themselves which is the fastest here, and times decopt against that one. A case
about memory has no second side: it is a `Footprint`.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from experiments.bench import timing

#: Relative difference between the numbers of both sides that rounding explains.
TOLERANCE = 1e-4
#: How often the hand-written forms run to decide which is the reference.
HEATS = 7


@dataclasses.dataclass(frozen=True)
class Contest:
  """Programs that compute the same, ready to run.

  A program runs one dispatch to its end and returns an array of what it
  computed, such as losses. Called again it goes on from where it was.

  Attributes:
    decopt: the program that uses decopt.
    references: hand-written programs by the name of their form.
    unit: of what is reported: seconds, or work per second.
    amount: how much work a run does, in the numerator of ``unit``; None
      reports the seconds themselves.
    witnesses: for references that decopt is to be as fast as, and that do not
      compute the same: programs that do. They are compared and not timed.
  """

  decopt: Callable[[], np.ndarray]
  references: Mapping[str, Callable[[], np.ndarray]]
  unit: str
  amount: float | None = None
  witnesses: Mapping[str, Callable[[], np.ndarray]] = dataclasses.field(
    default_factory=dict
  )

  def value(self, seconds: float) -> float:
    """Expresses the time of one run in ``unit``."""
    return seconds if self.amount is None else self.amount / seconds


@dataclasses.dataclass(frozen=True)
class Footprint:
  """Memory, already measured, in the place of two programs.

  Attributes:
    peak: most bytes that a process held for what it did.
    reference: bytes of what it did it with.
    form: what these are.
  """

  peak: int
  reference: int
  form: str


@dataclasses.dataclass(frozen=True)
class Case:
  """One row of a suite.

  Attributes:
    name: the row's name.
    target: largest ratio that is good enough.
    build: makes the programs, or measures memory; called in a process of the
      case's own.
    repeats: of `timing.compare`.
    devices: CPU devices the programs need.
  """

  name: str
  target: float
  build: Callable[[], Contest | Footprint]
  repeats: int = 15
  devices: int = 1


@dataclasses.dataclass(frozen=True)
class Result:
  """What was measured.

  Attributes:
    name: of the case.
    ratio: of times, decopt's over that of the reference, or of bytes; smaller
      is better.
    value: of decopt, in ``unit``.
    reference: of the fastest hand-written form, in ``unit``.
    unit: of the two.
    form: which hand-written form that was.
    others: times of the other forms, over that of the fastest.
  """

  name: str
  ratio: float
  value: float
  reference: float
  unit: str
  form: str
  others: Mapping[str, float]

  def row(self) -> dict[str, Any]:
    """The result as `--json` writes it."""
    return {
      'name': self.name,
      'ratio': round(self.ratio, 4),
      'value': float(f'{self.value:.5g}'),
      'reference': float(f'{self.reference:.5g}'),
      'unit': self.unit,
    }


def measure(case: Case, repeats: int | None = None) -> Result:
  """Builds the programs of a case, checks that they agree, and times them.

  Args:
    case: the case.
    repeats: in place of the case's own number.

  Raises:
    ArithmeticError: if the two sides do not compute the same.
  """
  contest = case.build()
  if isinstance(contest, Footprint):
    return _footprint(case.name, contest)
  check_agreement(case.name, contest)
  repeated = HEATS if len(contest.references) > 1 else 1
  heats = timing.shortest(contest.references, repeats=repeated)
  form, best = min(heats.items(), key=lambda item: item[1])
  found = timing.compare(
    contest.decopt, contest.references[form], repeats=repeats or case.repeats
  )
  return Result(
    case.name,
    found.ratio,
    contest.value(found.seconds),
    contest.value(found.reference_seconds),
    contest.unit,
    form,
    {name: heat / best for name, heat in heats.items() if name != form},
  )


def _footprint(name: str, found: Footprint) -> Result:
  return Result(
    name,
    found.peak / found.reference,
    found.peak,
    found.reference,
    'bytes',
    found.form,
    {},
  )


def check_agreement(name: str, contest: Contest) -> None:
  """Runs every program once and compares what they computed.

  Args:
    name: of the case, for the error.
    contest: programs that have not run yet; their first run compiles them.

  Raises:
    ArithmeticError: if a hand-written form computes something else.
  """
  ours = contest.decopt()
  if contest.witnesses:
    for reference in contest.references.values():
      reference()  # compiles it
  for form, program in (contest.witnesses or contest.references).items():
    theirs = program()
    if ours.shape != theirs.shape:
      raise ArithmeticError(
        f'case {name!r}: decopt returned {ours.shape} numbers, the '
        f'hand-written form {form!r} {theirs.shape}; give both the same steps '
        'and workers.'
      )
    if not np.allclose(ours, theirs, rtol=TOLERANCE, atol=TOLERANCE):
      worst = np.nanmax(np.abs(ours - theirs), initial=0.0)
      raise ArithmeticError(
        f'case {name!r}: decopt and the hand-written form {form!r} compute '
        f'different numbers, up to {worst:.3g} apart. Their times cannot be '
        'compared before they do the same arithmetic on the same data.'
      )


def looped(
  step: Callable[..., tuple[Any, jax.Array]], state: Any, *args: Any
) -> Callable[[], np.ndarray]:
  """Makes a program of a step that may overwrite its state.

  Args:
    step: ``step(state, *args) -> (state, losses)``.
    state: where the first run starts.
    *args: the same in every run.

  Returns:
    A function without arguments: each call advances the state, waits for all
    of it, and returns the losses.
  """
  held = [state]

  def program():
    held[0], losses = jax.block_until_ready(step(held[0], *args))
    return np.asarray(losses)

  return program
