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
from decopt.analysis import sent

# How far to look for the period of a collective when no horizon is given.
_HORIZONS = (2, 64, 2048, 65536)


def traffic(
  transform,
  params,
  workers: int,
  *,
  steps: int | None = None,
  axis_name: base.AxisName = base.WORKERS,
  **extra,
) -> sent.Traffic:
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
    >>> costs = decopt.traffic(algorithm, jnp.zeros(10_000), workers=8)
    >>> costs.bytes_per_step, costs.messages_per_step
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


def _follow(program, workers, steps) -> sent.Traffic:
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
  return sent.Traffic(
    tuple(
      _exchange(event, np.asarray(ran), workers)
      for event, ran in zip(events, runs, strict=True)
    ),
    workers,
    steps,
  )


def _whole_periods(result: sent.Traffic) -> sent.Traffic:
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
  return sent.Traffic(exchanges, result.workers, steps)


def _exchange(event, ran, workers) -> sent.Exchange:
  eqn: Any = event.eqn
  operands = [atom.aval for atom in eqn.invars]
  pairs, groups = (), ()
  if eqn.primitive.name == 'ppermute':
    # Those who send to themselves, to fill up a permutation, send nothing.
    pairs = tuple(pair for pair in eqn.params['perm'] if pair[0] != pair[1])
  else:
    groups = eqn.params.get('axis_index_groups') or (range(workers),)
    groups = tuple(map(tuple, groups))
  return sent.Exchange(
    collective=eqn.primitive.name,
    dtype=operands[0].dtype,
    size=sum(aval.size * aval.dtype.itemsize for aval in operands),
    workers=workers,
    runs=event.times * ran.astype(np.int64),
    pairs=pairs,
    groups=groups,
  )
