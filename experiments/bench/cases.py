"""A case: something decopt does, and the same written by hand.

`measure` first makes sure that both compute the same numbers, because a ratio
of times means nothing otherwise, then lets the hand-written forms decide among
themselves which is the fastest here, and times decopt against that one.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from experiments.bench import timing

#: Relative difference between the losses of both sides that rounding explains.
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
  """

  decopt: Callable[[], np.ndarray]
  references: Mapping[str, Callable[[], np.ndarray]]
  unit: str
  amount: float | None = None

  def value(self, seconds: float) -> float:
    """Expresses the time of one run in ``unit``."""
    return seconds if self.amount is None else self.amount / seconds


@dataclasses.dataclass(frozen=True)
class Case:
  """One row of a suite.

  Attributes:
    name: the row's name.
    target: largest ratio of times that is good enough.
    build: makes the programs; called in a process of the case's own.
    repeats: of `timing.compare`.
    devices: CPU devices the programs need.
  """

  name: str
  target: float
  build: Callable[[], Contest]
  repeats: int = 15
  devices: int = 1


@dataclasses.dataclass(frozen=True)
class Result:
  """What was measured.

  Attributes:
    name: of the case.
    ratio: time of decopt over time of the reference; smaller is better.
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
  check_agreement(case.name, contest)
  heats = timing.shortest(contest.references, repeats=HEATS)
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


def check_agreement(name: str, contest: Contest) -> None:
  """Runs every program once and compares what they computed.

  Args:
    name: of the case, for the error.
    contest: programs that have not run yet; their first run compiles them.

  Raises:
    ArithmeticError: if a hand-written form computes something else.
  """
  ours = contest.decopt()
  for form, reference in contest.references.items():
    theirs = reference()
    if ours.shape != theirs.shape:
      raise ArithmeticError(
        f'case {name!r}: decopt returned losses {ours.shape}, the hand-written '
        f'form {form!r} {theirs.shape}; give both the same steps and workers.'
      )
    if not np.allclose(ours, theirs, rtol=TOLERANCE, atol=TOLERANCE):
      worst = np.nanmax(np.abs(ours - theirs), initial=0.0)
      raise ArithmeticError(
        f'case {name!r}: decopt and the hand-written form {form!r} compute '
        f'different losses, up to {worst:.3g} apart. Their times cannot be '
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
