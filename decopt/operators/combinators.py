"""When, how much and how often an operator acts."""

import numbers
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from decopt import base


class EveryState(NamedTuple):
  """State of `every`.

  Attributes:
    step: steps so far.
    due: the step, counted from 1, at whose end the operator acts next.
    inner: state of the operator.
  """

  step: base.Clock
  due: base.Clock
  inner: Any


def every(
  operator: base.Operator,
  period: int | Callable[[jax.Array], jax.Array],
  *,
  schedule: optax.Schedule | None = None,
) -> base.Operator:
  r"""Lets an operator act at the end of each period, and not in between.

  Let :math:`T` be the ``operator`` and :math:`H` the ``period``. At step
  :math:`t = 1, 2, \dots`

  .. math::

    x \leftarrow \begin{cases} T(x) & t \in \{H, 2H, \dots\} \\
      x & \text{otherwise.} \end{cases}

  A ``period`` that is a function gives the length of the round that begins
  after :math:`t` steps, as :math:`H(t)`, or, with a ``schedule``
  :math:`\eta`, as :math:`H(\eta(t))`; values below 1, and NaN, count as 1.
  Between two actions nothing is communicated, in any layout: the decision
  hangs on a `decopt.Clock` and never on data. The mean over workers is
  preserved if the operator preserves it.

  Args:
    operator: a `decopt.Operator`.
    period: steps from one action to the next, at least 1; or a function of
      an int32 scalar, the steps so far (of ``schedule``'s value, if given).
    schedule: an optax schedule whose value at the steps so far is handed to
      ``period``: the learning rate, for periods that grow as it falls.

  Returns:
    An operator. The state of ``operator`` moves only when it acts.

  Raises:
    TypeError: if ``period`` is neither an int nor a function, or a
      ``schedule`` comes with an int.
    ValueError: if ``period`` is below 1.

  Example:
    >>> every_tenth = decopt.every(decopt.all_reduce(), 10)
    >>> rate = optax.cosine_decay_schedule(0.1, 1000)
    >>> growing = decopt.every(
    ...     decopt.all_reduce(), lambda eta: 2 + (0.02 / eta)**2, schedule=rate)
  """
  length = _period_function(period, schedule)

  def init(params):
    start = base.Clock.start()
    return EveryState(
      start, base.Clock(length(start.count)), operator.init(params)
    )

  def update(tree, state, params=None, **extra):
    step = state.step.tick()
    acts = step.count == state.due.count

    def act(tree, inner):
      return operator.update(tree, inner, params, **extra)

    def rest(tree, inner):
      return tree, inner

    tree, inner = jax.lax.cond(acts, act, rest, tree, state.inner)
    next_due = step.count + length(step.count)
    due = jnp.where(acts, next_due, state.due.count)
    return tree, EveryState(step, base.Clock(due), inner)

  return optax.GradientTransformationExtraArgs(init, update)


class DampedState(NamedTuple):
  """State of `damped`.

  Attributes:
    step: steps so far, for a scheduled rate; None for a fixed one.
    inner: state of the operator.
  """

  step: base.Clock | None
  inner: Any


def damped(
  operator: base.Operator, rate: optax.ScalarOrSchedule
) -> base.Operator:
  r"""Goes a part of the way that an operator goes.

  Let :math:`T` be the ``operator`` and :math:`\gamma` the ``rate``:

  .. math:: x \leftarrow (1 - \gamma)\, x + \gamma\, T(x) .

  The mean over workers is preserved if the operator preserves it; what the
  operator leaves fixed stays fixed.

  Args:
    operator: a `decopt.Operator`.
    rate: :math:`\gamma` in [0, 1], or a schedule of it.

  Returns:
    An operator.

  Raises:
    ValueError: if ``rate`` is outside of [0, 1].

  Example:
    >>> lazy = decopt.damped(decopt.gossip(decopt.ring(8)), 0.5)
  """
  concrete = not callable(rate) and not isinstance(rate, jax.core.Tracer)
  if concrete and not 0 <= rate <= 1:
    raise ValueError(f'damped got rate={rate}; it must lie between 0 and 1.')

  scheduled = callable(rate)

  def init(params):
    step = base.Clock.start() if scheduled else None
    return DampedState(step, operator.init(params))

  def update(tree, state, params=None, **extra):
    gamma = rate(state.step.count) if scheduled else rate
    moved, inner = operator.update(tree, state.inner, params, **extra)

    def blend(x, y):
      dtype = base.wide(x.dtype)
      part = jnp.asarray(gamma).astype(dtype)
      mixed = (1 - part) * x.astype(dtype) + part * y.astype(dtype)
      return mixed.astype(x.dtype)

    step = state.step.tick() if scheduled else None
    return jax.tree.map(blend, tree, moved), DampedState(step, inner)

  return optax.GradientTransformationExtraArgs(init, update)


def repeated(operator: base.Operator, rounds: int) -> base.Operator:
  r"""Lets an operator act several times in a step.

  Let :math:`T` be the ``operator`` and :math:`k` the ``rounds``:

  .. math:: x \leftarrow T^k(x) .

  On a graph that changes with time each round uses the next graph. The mean
  over workers is preserved if the operator preserves it. The program grows
  with ``rounds``.

  Args:
    operator: a `decopt.Operator`.
    rounds: :math:`k`, at least 1.

  Returns:
    An operator, whose state is that of ``operator``.

  Raises:
    TypeError: if ``rounds`` is not an int.
    ValueError: if ``rounds`` is below 1.

  Example:
    >>> twice = decopt.repeated(decopt.gossip(decopt.ring(8)), 2)
  """
  rounds = _positive_int('repeated', 'rounds', rounds)

  def update(tree, state, params=None, **extra):
    for _ in range(rounds):
      tree, state = operator.update(tree, state, params, **extra)
    return tree, state

  return optax.GradientTransformationExtraArgs(operator.init, update)


def _period_function(period, schedule) -> Callable[[jax.Array], jax.Array]:
  """Returns the function from the steps so far to the length of a round."""
  if not callable(period):
    steps = _positive_int('every', 'period', period)
    if schedule is not None:
      raise TypeError(
        f'every got period={period} and a schedule; with a schedule, period '
        'is a function of its value, such as lambda rate: 0.1 / rate.'
      )
    return lambda count: jnp.asarray(steps, jnp.int32)

  def length(count):
    value = period(count if schedule is None else schedule(count))
    value = jnp.where(value >= 1, value, 1)  # 1 for NaN, too
    # The largest period, not an overflow, for a schedule that reaches zero.
    return jnp.minimum(value, np.iinfo(np.int32).max // 2).astype(jnp.int32)

  return length


def _positive_int(function, argument, value) -> int:
  if isinstance(value, bool) or not isinstance(value, numbers.Integral):
    raise TypeError(
      f'{function} got {argument}={value!r} of type {type(value).__name__}; '
      'it must be an int. (optax.inject_hyperparams leaves an argument as it '
      f'is when told static_args={argument!r}.)'
    )
  if value < 1:
    raise ValueError(
      f'{function} got {argument}={value}; it must be at least 1.'
    )
  return int(value)
