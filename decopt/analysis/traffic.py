"""What an algorithm sends, read off its program.

No algorithm counts bytes. `traffic` walks the program of one update and finds
every collective in it, with the bytes that each worker puts on the wire, and
follows the counters that decide at which steps it runs.
"""

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from decopt import base
from decopt.analysis import partial

# How far to look for the period of a collective when no horizon is given.
_HORIZONS = (2, 64, 2048, 65536)


@dataclasses.dataclass(frozen=True, eq=False)
class Exchange:
  """One collective of an algorithm.

  Attributes:
    collective: name of the primitive, such as ``'ppermute'`` or ``'psum'``.
    dtype: of what crosses the wire.
    bytes: [workers] bytes that each worker sends when it runs once.
    messages: [workers] messages that each worker sends when it runs once.
    runs: [steps] how often it runs at each step.
  """

  collective: str
  dtype: np.dtype
  bytes: np.ndarray
  messages: np.ndarray
  runs: np.ndarray

  @property
  def period(self) -> int | None:
    """Steps between its first two runs; None if it does not run twice."""
    steps = np.flatnonzero(self.runs)
    return int(steps[1] - steps[0]) if len(steps) > 1 else None


@dataclasses.dataclass(frozen=True, eq=False)
class Traffic:
  """All that an algorithm sends over a number of steps.

  A permutation counts its operand once for each worker that sends to another,
  an all-reduce or an all-gather its operand once for each worker: what the
  algorithm hands to the network, whatever the network makes of it. (A ring
  all-reduce moves 2 (n - 1) / n times as much.)

  Attributes:
    exchanges: the collectives in the order of the program.
    workers: number of workers.
    steps: the horizon.
  """

  exchanges: tuple[Exchange, ...]
  workers: int
  steps: int

  @property
  def bytes(self) -> np.ndarray:
    """[steps] bytes sent at each step by a worker, the mean over workers."""
    return self._per_step('bytes')

  @property
  def messages(self) -> np.ndarray:
    """[steps] messages sent at each step by a worker, the mean."""
    return self._per_step('messages')

  @property
  def bytes_per_step(self) -> float:
    """Bytes sent by a worker in a step, the mean over the horizon."""
    return float(np.mean(self.bytes))

  @property
  def messages_per_step(self) -> float:
    """Messages sent by a worker in a step, the mean over the horizon."""
    return float(np.mean(self.messages))

  @property
  def bytes_by_worker(self) -> np.ndarray:
    """[workers] bytes sent in a step, the mean over the horizon."""
    total = np.zeros(self.workers)
    for exchange in self.exchanges:
      total += exchange.bytes * np.mean(exchange.runs)
    return total

  def _per_step(self, what) -> np.ndarray:
    total = np.zeros(self.steps)
    for exchange in self.exchanges:
      total += np.mean(getattr(exchange, what)) * exchange.runs
    return total

  def __str__(self) -> str:
    lines = [
      f'{self.bytes_per_step:,.0f} bytes in {self.messages_per_step:.3g} '
      'messages a step from each worker'
    ]
    for e in self.exchanges:
      lines.append(
        f'  {e.collective}: {np.mean(e.bytes):,.0f} bytes of {e.dtype}, '
        f'{self._when(e)}'
      )
    return '\n'.join(lines)

  def _when(self, exchange) -> str:
    if exchange.period is None:
      times = 'once' if exchange.runs.any() else 'never'
      return f'{times} in {self.steps} steps'
    if exchange.period == 1:
      return 'every step'
    return f'every {exchange.period} steps'


def traffic(
  transform,
  params,
  workers: int,
  *,
  steps: int | None = None,
  axis_name: base.AxisName = base.WORKERS,
  **extra,
) -> Traffic:
  """Reads off a program what each worker sends, and when.

  Args:
    transform: an optax transformation.
    params: the parameters of one worker, or their shapes and dtypes.
    workers: number of workers.
    steps: the horizon; default long enough for each collective to run twice.
    axis_name: the axis of the workers.
    **extra: extra arguments of ``transform.update``.

  Returns:
    A `Traffic`: bytes and messages per worker, by collective and by step.

  Raises:
    ValueError: if data decide whether a collective runs.

  Example:
    >>> import jax.numpy as jnp
    >>> algorithm = decopt.dsgd(optax.sgd(0.1), decopt.ring(8))
    >>> sent = decopt.traffic(algorithm, jnp.zeros(10_000), workers=8)
    >>> sent.bytes_per_step, sent.messages_per_step
    (80000.0, 2.0)
  """
  program = partial.oblivious(transform, params, workers, axis_name, extra)
  if steps is not None:
    return _follow(program, workers, steps)
  for horizon in _HORIZONS:
    result = _follow(program, workers, horizon)
    if all(e.period for e in result.exchanges):
      break
  return _whole_periods(result)


def data_dependent_collectives(
  transform,
  params,
  workers: int,
  *,
  axis_name: base.AxisName = base.WORKERS,
  **extra,
) -> list[str]:
  """Lists the collectives that run or not according to data; none should.

  In simulation such a program runs. On devices those that skip the collective
  leave the others waiting for ever. The usual case is a guard around a chain
  that communicates, such as `optax.apply_if_finite`: put it around the local
  part only. A conditional collective inside a loop is listed too, since what
  decides there cannot be followed.

  Args:
    transform: an optax transformation.
    params: the parameters of one worker, or their shapes and dtypes.
    workers: number of workers.
    axis_name: the axis of the workers.
    **extra: extra arguments of ``transform.update``.

  Returns:
    A description for each; an empty list is good.

  Example:
    >>> import jax.numpy as jnp
    >>> algorithm = decopt.local_sgd(optax.sgd(0.1), period=8)
    >>> decopt.data_dependent_collectives(algorithm, jnp.zeros(3), workers=4)
    []
  """
  program = partial.oblivious(transform, params, workers, axis_name, extra)
  found = []
  jax.eval_shape(
    lambda values: found.append(program.step(values)[1].data_dependent),
    program.start,
  )
  return found[0]


def _follow(program, workers, steps) -> Traffic:
  """Runs the counters for ``steps`` steps and notes what they switch on."""
  events = []

  def step(values, _):
    values, interpreter = program.step(values)
    if interpreter.data_dependent:
      raise ValueError(
        'traffic cannot be read off a program in which data decide whether '
        f'workers communicate: {"; ".join(interpreter.data_dependent)}.'
      )
    events[:] = interpreter.events
    return values, [jnp.asarray(e.condition, bool) for e in events]

  @functools.partial(jax.jit, static_argnums=1)
  def follow(start, steps):
    return jax.lax.scan(step, start, length=steps)[1]

  runs = follow(program.start, steps)
  return Traffic(
    tuple(
      _exchange(event, np.asarray(ran), workers)
      for event, ran in zip(events, runs, strict=True)
    ),
    workers,
    steps,
  )


def _whole_periods(result: Traffic) -> Traffic:
  """Cuts a horizon to common periods, so that means over it are exact.

  Where a schedule makes the rounds unequal there are none, and the horizon
  stays as long as it is.
  """
  common = math.lcm(*(e.period or result.steps for e in result.exchanges))
  steps = result.steps // common * common
  repeats = all(
    np.array_equal(e.runs[common:], e.runs[:-common]) for e in result.exchanges
  )
  if not steps or (steps > common and not repeats):
    return result
  exchanges = tuple(
    dataclasses.replace(e, runs=e.runs[:steps]) for e in result.exchanges
  )
  return Traffic(exchanges, result.workers, steps)


def _exchange(event, ran, workers) -> Exchange:
  eqn: Any = event.eqn
  operands = [atom.aval for atom in eqn.invars]
  size = sum(aval.size * aval.dtype.itemsize for aval in operands)
  senders = np.ones(workers)
  if eqn.primitive.name == 'ppermute':
    # Those who send to themselves, to fill up a permutation, send nothing.
    senders = np.zeros(workers)
    for source, target in eqn.params['perm']:
      senders[source] += source != target
  return Exchange(
    collective=eqn.primitive.name,
    dtype=operands[0].dtype,
    bytes=size * senders,
    messages=senders,
    runs=event.times * ran.astype(np.int64),
  )
