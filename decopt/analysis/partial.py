"""Running the part of a transformation that does not depend on data.

Which collectives of a program run at which step hangs on counters, schedules
and constants; what they carry hangs on gradients. This interpreter computes
the first kind and forgets the second. What it learns are the collectives in
the order of the program, each with the condition under which it runs.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from decopt import axes
from decopt import base
from decopt import jaxprs

#: The value of whatever depends on data.
UNKNOWN = object()


@dataclasses.dataclass(frozen=True, eq=False)
class Event:
  """One collective of a program.

  Attributes:
    eqn: the equation.
    times: how often a loop with a fixed number of rounds repeats it.
    condition: whether it runs; a bool, traced if a counter decides.
  """

  eqn: Any
  times: int
  condition: Any


class Interpreter:
  """Evaluates a jaxpr as far as its inputs are known.

  Attributes:
    events: the collectives met so far.
    data_dependent: descriptions of collectives that run or not according to
      data.
  """

  def __init__(self, axis_name: base.AxisName):
    self.axis_name = axis_name
    self.events: list[Event] = []
    self.data_dependent: list[str] = []

  def run(self, jaxpr, inputs, condition=True, times=1) -> list[Any]:
    """Returns the outputs of ``jaxpr``, `UNKNOWN` where data decide."""

    def rule(eqn, values):
      return self._equation(eqn, values, condition, times)

    return jaxprs.walk(jaxpr, inputs, rule)

  def _equation(self, eqn, values, condition, times):
    name = eqn.primitive.name
    known = not any(value is UNKNOWN for value in values)
    forgotten = [UNKNOWN] * len(eqn.outvars)
    inner = jaxprs.called(eqn)
    if jaxprs.is_collective(eqn, self.axis_name):
      self.events.append(Event(eqn, times, condition))
      return forgotten
    if name == 'cond':
      return self._conditional(eqn, values, condition, times)
    if inner is not None:
      return self.run(inner, values, condition, times)
    if jaxprs.mentions(eqn, self.axis_name):
      self._loop(eqn, condition, times)
      return forgotten
    return jaxprs.bind(eqn, values) if known else forgotten

  def _conditional(self, eqn, values, condition, times):
    index, *operands = values
    branches = eqn.params['branches']
    if index is UNKNOWN:
      if jaxprs.communicates(eqn, self.axis_name):
        self.data_dependent += self._describe(eqn, 'a conditional')
        for branch in branches:
          self.run(branch, [UNKNOWN] * len(operands), condition, times)
      return [UNKNOWN] * len(eqn.outvars)
    # lax.cond and lax.switch clamp; the index in a jaxpr is in range.
    results = [
      self.run(branch, operands, jnp.logical_and(condition, index == i), times)
      for i, branch in enumerate(branches)
    ]
    return [_select(index, values) for values in zip(*results, strict=True)]

  def _loop(self, eqn, condition, times):
    """A loop with collectives: fixed rounds are counted, others reported.

    What is known at its start may not be so in the second round, so all inputs
    of the body are forgotten, and a conditional collective inside is reported
    even if a counter of the loop decides.
    """
    length = eqn.params.get('length')
    if length is None and jaxprs.communicates(eqn, self.axis_name):
      self.data_dependent += self._describe(eqn, f'a {eqn.primitive.name} loop')
    for jaxpr in jaxprs.inner_jaxprs(eqn):
      inputs = [UNKNOWN] * len(jaxprs.opened(jaxpr)[0].invars)
      self.run(jaxpr, inputs, condition, times * (length or 1))

  def _describe(self, eqn, where) -> list[str]:
    names = sorted(set(_collective_names(eqn, self.axis_name)))
    return [f'{name} inside {where} that depends on data' for name in names]


def _collective_names(eqn, axis_name):
  for jaxpr in jaxprs.inner_jaxprs(eqn):
    for inner in jaxprs.opened(jaxpr)[0].eqns:
      if jaxprs.is_collective(inner, axis_name):
        yield inner.primitive.name
      else:
        yield from _collective_names(inner, axis_name)


def _select(index, values):
  if any(value is UNKNOWN for value in values):
    return UNKNOWN
  result = values[0]
  for i, value in enumerate(values[1:], 1):
    result = jnp.where(index == i, value, result)
  return result


@dataclasses.dataclass(frozen=True, eq=False)
class Oblivious:
  """The part of a transformation's state that moves without data.

  Attributes:
    jaxpr: of ``update`` on flat arguments: updates, state, parameters, extra.
    avals: shapes and dtypes of these arguments.
    start: position among them -> initial value, for each known leaf of the
      state. Its new value has the same position among the results, since
      updates and state go out as they come in.
    axis_name: name of the axis of the workers.
  """

  jaxpr: Any
  avals: list[Any]
  start: dict[int, Any]
  axis_name: base.AxisName

  def step(self, values: dict[int, Any]) -> tuple[dict[int, Any], Interpreter]:
    """Runs one update on the known leaves; returns those after it."""
    inputs = [values.get(i, UNKNOWN) for i in range(len(self.avals))]
    interpreter = Interpreter(self.axis_name)
    results = interpreter.run(self.jaxpr, inputs)
    return {i: results[i] for i in values}, interpreter


def oblivious(transform, params, workers: int, axis_name, extra) -> Oblivious:
  """Traces a transformation and finds which leaves of its state are known.

  These are the leaves whose initial value is a constant and that every update
  computes from such leaves only: counters, schedules, keys.

  Args:
    transform: an optax transformation.
    params: the parameters of one worker, or their shapes and dtypes.
    workers: size of the axis.
    axis_name: its name.
    extra: extra arguments of ``update``.
  """
  shapes = jax.tree.map(
    lambda x: jax.ShapeDtypeStruct(np.shape(x), jnp.result_type(x)),
    (params, extra),
  )
  flat_params, treedef = jax.tree.flatten(shapes[0])

  def init(*leaves):
    state = transform.init(jax.tree.unflatten(treedef, leaves))
    structures.append(jax.tree.structure(state))
    return jax.tree.leaves(state)

  structures = []
  with axes.executed_as('mesh'):
    init_jaxpr = jaxprs.trace(init, flat_params, axis_name, workers)
  state_shapes = jaxprs.opened(init_jaxpr)[0].outvars
  state = jax.tree.unflatten(
    structures[0],
    [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in state_shapes],
  )
  args = (shapes[0], state, shapes[0], shapes[1])
  flat_args, args_treedef = jax.tree.flatten(args)

  def update(*leaves):
    updates, state, params, extra = jax.tree.unflatten(args_treedef, leaves)
    updates, state = transform.update(updates, state, params, **extra)
    return jax.tree.leaves((updates, state))

  with axes.executed_as('mesh'):
    jaxpr = jaxprs.trace(update, flat_args, axis_name, workers)
  first = len(flat_params)
  start = Interpreter(axis_name).run(init_jaxpr, [UNKNOWN] * first)
  known = {
    first + i: value for i, value in enumerate(start) if value is not UNKNOWN
  }
  return _settle(Oblivious(jaxpr, flat_args, known, axis_name))


def _settle(candidate: Oblivious) -> Oblivious:
  """Drops leaves that an update makes depend on data, until none does."""
  known = candidate.start
  while True:
    still = []

    def check(values, still=still):
      after, _ = candidate.step(values)
      still += [i for i, value in after.items() if value is not UNKNOWN]
      return 0

    jax.eval_shape(check, known)
    if len(still) == len(known):
      return dataclasses.replace(candidate, start=known)
    known = {i: known[i] for i in still}
