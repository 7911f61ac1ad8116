"""Does an algorithm keep all workers equal?

If it reads gradients through their mean only, workers that start equal stay
equal, and a simulation needs one copy of the parameters and one gradient of
one large batch instead of as many as there are workers.
"""

import enum
import functools

import jax
import jax.numpy as jnp

from decopt import base
from decopt import jaxprs
from decopt.analysis import partial


class Kind(enum.IntEnum):
  """How a value depends on which worker computes it."""

  EQUAL = 0  # the same on all workers
  LINEAR = 1  # an affine function of this worker's gradient
  OTHER = 2


# Maps that take means to means.
_AFFINE = {
  'add',
  'add_any',
  'broadcast_in_dim',
  'concatenate',
  'copy',
  'convert_element_type',
  'neg',
  'optimization_barrier',
  'reshape',
  'slice',
  'squeeze',
  'sub',
  'transpose',
}


def keeps_workers_equal(
  transform,
  params,
  workers: int,
  *,
  axis_name: base.AxisName = base.WORKERS,
  **extra,
) -> bool:
  """Says whether workers that start equal stay equal, whatever their data.

  True if every gradient enters linearly into a mean over workers before
  anything else is done with it, and no worker hears of another afterwards:
  `decopt.all_reduce_sgd`, and chains that start with `decopt.all_reduce` and do
  not communicate again. Such an algorithm gives the same when every worker gets
  the mean gradient instead of its own. False if that cannot be seen from the
  program.

  Args:
    transform: an optax transformation.
    params: the parameters of one worker, or their shapes and dtypes.
    workers: number of workers.
    axis_name: the axis of the workers.
    **extra: extra arguments of ``transform.update``.

  Example:
    >>> import jax.numpy as jnp
    >>> algorithm = decopt.all_reduce_sgd(optax.adam(1e-3))
    >>> decopt.keeps_workers_equal(algorithm, jnp.zeros(3), workers=4)
    True
  """
  program = partial.oblivious(transform, params, workers, axis_name, extra)
  gradients = len(jax.tree.leaves(params))
  inputs = [Kind.LINEAR] * gradients
  inputs += [Kind.EQUAL] * (len(program.avals) - gradients)
  rule = functools.partial(_rule, axis_name=axis_name)
  outputs = jaxprs.walk(program.jaxpr, inputs, rule, lambda _: Kind.EQUAL)
  return all(kind == Kind.EQUAL for kind in outputs)


def _rule(eqn, kinds, *, axis_name) -> list[Kind]:
  name, worst = eqn.primitive.name, max(kinds, default=Kind.EQUAL)
  rule = functools.partial(_rule, axis_name=axis_name)
  inner = jaxprs.called(eqn)
  if name == 'cond' and kinds[0] == Kind.EQUAL:
    branches = [
      jaxprs.walk(branch, kinds[1:], rule, lambda _: Kind.EQUAL)
      for branch in eqn.params['branches']
    ]
    return [max(outputs) for outputs in zip(*branches, strict=True)]
  if inner is not None:
    return jaxprs.walk(inner, kinds, rule, lambda _: Kind.EQUAL)
  if jaxprs.sums_over(eqn, axis_name) and worst <= Kind.LINEAR:
    result = Kind.EQUAL
  elif jaxprs.mentions(eqn, axis_name):
    result = Kind.OTHER
  elif worst == Kind.EQUAL or (name in _AFFINE and not _rounds(eqn)):
    result = worst
  elif (name == 'mul' and min(kinds) == Kind.EQUAL) or (
    name == 'div' and kinds[1] == Kind.EQUAL
  ):
    result = worst
  else:
    result = Kind.OTHER
  return [result] * len(eqn.outvars)


def _rounds(eqn) -> bool:
  """Says whether an equation turns numbers into integers."""
  return any(
    not jnp.issubdtype(outvar.aval.dtype, jnp.inexact) for outvar in eqn.outvars
  )
