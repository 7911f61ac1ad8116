"""A simulation with every worker's buffers apart.

`jax.vmap` keeps the workers in one array with a leading axis. On CPU it is
faster to keep them apart and repeat the program for each of them: batched
matrix products become plain ones, and what a neighbour sent is that
neighbour's buffer, not a copy. *[measured, MLP 784-256-10, batch 32, ring:
0.79 of the hand-written `jax.vmap` step at 16 workers, 0.71 at 64; compilation
0.95 s against 0.35 s, and 3.6 s against 0.5 s]*

The program of one worker is traced once and then run equation by equation for
all of them in lockstep. What is the same on all workers, counters and
constants, is computed once; a collective reads the others' values.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from decopt import axes
from decopt import base
from decopt import jaxprs
from decopt import stacking


class PerWorker(tuple):
  """Values that differ between workers, one for each.

  A value of the interpreter that is not one of these is the same on all.
  """


def stacked(fn: Callable, *, axis_name: base.AxisName, workers: int):
  """Runs a worker function for all workers, on stacked arrays.

  Args:
    fn: ``(shared, stacked) -> (shared, stacked)``, lists of arrays, seen from
      one worker.
    axis_name: name of the axis.
    workers: its size.

  Returns:
    The function of lists in which ``stacked`` arrays have a worker axis.
  """

  def run(shared, stacked_args):
    apart = [PerWorker(x[i] for i in range(workers)) for x in stacked_args]
    shared, apart = per_worker(fn, axis_name=axis_name, workers=workers)(
      shared, apart
    )
    return shared, [jnp.stack(spread(x, workers)) for x in apart]

  return run


def per_worker(fn: Callable, *, axis_name: base.AxisName, workers: int):
  """Like `stacked`, with a `PerWorker` tuple in the place of each array."""

  def run(shared, apart):
    counts = []

    def flat_fn(*args):
      results = fn(list(args[: len(shared)]), list(args[len(shared) :]))
      counts.append(len(results[0]))
      return [*results[0], *results[1]]

    with axes.executed_as('unrolled'):
      first = [values[0] for values in apart]
      jaxpr = jaxprs.trace(flat_fn, [*shared, *first], axis_name, workers)
    rule = functools.partial(_rule, axis_name=axis_name, workers=workers)
    results = jaxprs.walk(jaxpr, [*shared, *apart], rule)
    results_shared = results[: counts[-1]]
    if any(isinstance(x, PerWorker) for x in results_shared):
      raise ValueError(stacking.CLOCK_DIFFERS)
    return results_shared, results[counts[-1] :]

  return run


def _rule(eqn, inputs, *, axis_name, workers) -> list[Any]:
  """Gives the outputs of one equation for all workers."""
  name = eqn.primitive.name
  rule = functools.partial(_rule, axis_name=axis_name, workers=workers)
  mentions = jaxprs.mentions(eqn, axis_name)
  if not mentions and not any(isinstance(x, PerWorker) for x in inputs):
    return jaxprs.bind(eqn, inputs)
  # What is inside and the same on all workers, such as a clock, stays so.
  if name == 'cond' and not isinstance(inputs[0], PerWorker):
    return _switch(eqn, inputs, rule, workers)
  inner = jaxprs.called(eqn)
  if inner is not None and (mentions or name == 'jit'):
    return jaxprs.walk(inner, inputs, rule)
  if not mentions:
    return _locally(eqn, inputs, workers)
  if name == 'axis_index':
    return [PerWorker(np.int32(i) for i in range(workers))]
  if name == 'ppermute':
    return _permute(eqn, inputs, workers)
  if jaxprs.sums_over(eqn, axis_name):
    return [_total(x, workers) for x in inputs]
  if name == 'all_gather' and eqn.params['axis_index_groups'] is None:
    return [_gather(eqn, x, workers) for x in inputs]
  return _vmapped(eqn, inputs, axis_name, workers)


def _locally(eqn, inputs, workers) -> list[Any]:
  """Runs an equation once for each worker."""
  each = [jaxprs.bind(eqn, _of_worker(inputs, i)) for i in range(workers)]
  return [PerWorker(values) for values in zip(*each, strict=True)]


def _permute(eqn, inputs, workers) -> list[Any]:
  """Worker i holds what its partner sent; without a partner, zeros."""
  sources = {i: j for j, i in eqn.params['perm']}
  outputs = []
  for x in inputs:
    x = spread(x, workers)
    outputs.append(
      PerWorker(
        x[sources[i]] if i in sources else jnp.zeros_like(x[i])
        for i in range(workers)
      )
    )
  return outputs


def _total(x, workers):
  if not isinstance(x, PerWorker):
    return x * np.asarray(workers, x.dtype)
  return functools.reduce(lax.add, x)


def _gather(eqn, x, workers):
  """What all workers hold, which is the same for all of them."""
  join = jnp.concatenate if eqn.params['tiled'] else jnp.stack
  return join(spread(x, workers), eqn.params['all_gather_dimension'])


def _switch(eqn, inputs, rule, workers) -> list[Any]:
  """A conditional that all workers take together stays one."""
  index, *operands = inputs
  operands, rebuild = _pack(operands)
  kinds = []

  def run(branch):
    def body(flat):
      results = jaxprs.walk(branch, rebuild(flat), rule)
      # Branches may disagree on what is the same for all workers: averaging
      # makes it so. What differs in one branch is spread in all.
      kinds.append([isinstance(x, PerWorker) for x in results])
      return results

    return body

  bodies = [run(branch) for branch in eqn.params['branches']]
  for body in bodies:
    jax.eval_shape(lambda flat, body=body: _leaves(body(flat)), operands)
  varies = [any(flags) for flags in zip(*kinds, strict=True)]

  def unify(body):
    def unified(flat):
      return [
        spread(x, workers) if differs else x
        for x, differs in zip(body(flat), varies, strict=True)
      ]

    return unified

  outputs = lax.switch(index, [unify(body) for body in bodies], operands)
  return [
    PerWorker(x) if differs else x
    for x, differs in zip(outputs, varies, strict=True)
  ]


def _vmapped(eqn, inputs, axis_name, workers) -> list[Any]:
  """Any other collective: stacked for the moment, and taken apart again."""
  differs = [isinstance(x, PerWorker) for x in inputs]
  inputs = [
    jnp.stack(x) if d else x for x, d in zip(inputs, differs, strict=True)
  ]

  def mapped(fn, out_axes):
    return jax.vmap(
      fn,
      in_axes=([0 if d else None for d in differs],),
      out_axes=out_axes,
      axis_name=axis_name,
      axis_size=workers,
    )

  def is_shared(k):
    # A loop may carry a clock, or what else is shared. `jax.vmap` refuses to
    # return as common to all what it cannot see to be so; what is of floating
    # point is not worth the attempt.
    if jnp.issubdtype(eqn.outvars[k].aval.dtype, jnp.inexact):
      return False
    try:
      jax.eval_shape(mapped(lambda x: jaxprs.bind(eqn, x)[k], None), inputs)
    except ValueError:
      return False
    return True

  shared = [is_shared(k) for k in range(len(eqn.outvars))]
  run = mapped(
    functools.partial(jaxprs.bind, eqn), [None if s else 0 for s in shared]
  )
  return [
    x if s else PerWorker(x[i] for i in range(workers))
    for x, s in zip(run(inputs), shared, strict=True)
  ]


def _pack(values) -> tuple[list[Any], Callable]:
  """Returns a pytree of the values and the function that rebuilds them."""
  differs = [isinstance(x, PerWorker) for x in values]

  def rebuild(flat):
    return [
      PerWorker(x) if d else x for x, d in zip(flat, differs, strict=True)
    ]

  return [list(x) if d else x for x, d in zip(values, differs, strict=True)], (
    rebuild
  )


def _leaves(values) -> list[Any]:
  return [list(x) if isinstance(x, PerWorker) else x for x in values]


def _of_worker(values: Sequence[Any], i: int) -> list[Any]:
  return [x[i] if isinstance(x, PerWorker) else x for x in values]


def spread(x, workers: int) -> list[Any]:
  return list(x) if isinstance(x, PerWorker) else [x] * workers
