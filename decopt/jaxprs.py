"""Reading programs: the parts of a jaxpr that the library walks over.

Only parts that both ends of the supported versions of jax share are used: an
equation has a primitive, inputs, outputs and parameters, and some parameters
are jaxprs. (What separates the constants of a `scan` from
its carry is not among them.)
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from decopt import base

#: Primitives that run their one inner jaxpr once, on their own inputs.
_CALLS = {
  'closed_call',
  'custom_jvp_call',
  'custom_vjp_call',
  'jit',
  'remat2',
}


def trace(fn: Callable, args: Sequence[Any], axis_name, workers: int):
  """Traces a worker function of flat arguments.

  Args:
    fn: maps arrays to a flat list of arrays.
    args: arrays, or their shapes and dtypes.
    axis_name: name of the axis of the workers.
    workers: its size.

  Returns:
    A closed jaxpr that names the axis.
  """
  shapes = [jax.ShapeDtypeStruct(np.shape(x), x.dtype) for x in args]
  return jax.make_jaxpr(fn, axis_env=[(axis_name, workers)])(*shapes)


def opened(jaxpr) -> tuple[Any, Sequence[Any]]:
  """Returns a jaxpr and its constants, closed or not."""
  return getattr(jaxpr, 'jaxpr', jaxpr), getattr(jaxpr, 'consts', ())


def inner_jaxprs(eqn) -> Iterator[Any]:
  """Yields the jaxprs among the parameters of an equation."""
  for value in eqn.params.values():
    for item in value if isinstance(value, (tuple, list)) else (value,):
      if hasattr(opened(item)[0], 'eqns'):
        yield item


def called(eqn) -> Any | None:
  """Returns the jaxpr that an equation runs once in its place, if it does."""
  if eqn.primitive.name not in _CALLS:
    return None
  for name in ('jaxpr', 'call_jaxpr', 'fun_jaxpr'):
    if name in eqn.params:
      return eqn.params[name]
  return None


def names_axis(eqn, axis_name: base.AxisName) -> bool:
  """Says whether an equation itself refers to the axis."""
  for key in ('axis_name', 'axes'):
    names = eqn.params.get(key, ())
    names = names if isinstance(names, (tuple, list)) else (names,)
    if axis_name in names:
      return True
  return False


def is_collective(eqn, axis_name: base.AxisName) -> bool:
  """Says whether an equation itself talks to other workers."""
  return eqn.primitive.name != 'axis_index' and names_axis(eqn, axis_name)


def sums_over(eqn, axis_name: base.AxisName) -> bool:
  """Says whether an equation is the sum over all workers, and no other."""
  return (
    eqn.primitive.name == 'psum'
    and eqn.params['axes'] == (axis_name,)
    and eqn.params.get('axis_index_groups') is None
  )


def mentions(eqn, axis_name: base.AxisName) -> bool:
  """Says whether an equation, or one inside it, refers to the axis."""
  return names_axis(eqn, axis_name) or any(
    mentions(inner, axis_name)
    for jaxpr in inner_jaxprs(eqn)
    for inner in opened(jaxpr)[0].eqns
  )


def communicates(eqn, axis_name: base.AxisName) -> bool:
  """Says whether an equation, or one inside it, talks to other workers."""
  return is_collective(eqn, axis_name) or any(
    communicates(inner, axis_name)
    for jaxpr in inner_jaxprs(eqn)
    for inner in opened(jaxpr)[0].eqns
  )


def length(jaxpr) -> int:
  """Counts the equations of a program, those inside of others included."""
  return sum(
    1 + sum(map(length, inner_jaxprs(eqn))) for eqn in opened(jaxpr)[0].eqns
  )


def product_sizes(jaxpr) -> list[int]:
  """Lists the floating-point operations of each matrix product."""
  sizes = []
  for eqn in opened(jaxpr)[0].eqns:
    if eqn.primitive.name == 'dot_general':
      (contracted, _), _ = eqn.params['dimension_numbers']
      left = eqn.invars[0].aval.shape
      terms = math.prod(left[axis] for axis in contracted)
      sizes.append(2 * terms * eqn.outvars[0].aval.size)
    for inner in inner_jaxprs(eqn):
      sizes += product_sizes(inner)
  return sizes


def bind(eqn, inputs: Sequence[Any]) -> list[Any]:
  """Runs one equation on inputs of one's own."""
  params = eqn.primitive.get_bind_params(eqn.params)
  outputs = eqn.primitive.bind(*inputs, **params)
  return list(outputs) if eqn.primitive.multiple_results else [outputs]


def walk(
  jaxpr,
  inputs: Sequence[Any],
  rule: Callable[[Any, list[Any]], list[Any]],
  constant: Callable[[Any], Any] = lambda value: value,
) -> list[Any]:
  """Interprets a jaxpr: ``rule(equation, inputs) -> outputs``, in order.

  Args:
    jaxpr: a jaxpr, closed or without constants.
    inputs: a value for each of its inputs; anything that ``rule`` knows.
    rule: gives the values of an equation's outputs.
    constant: gives the value of a literal or a constant.
  """
  jaxpr, constants = opened(jaxpr)
  env = dict(zip(jaxpr.constvars, map(constant, constants), strict=True))
  env.update(zip(jaxpr.invars, inputs, strict=True))

  def read(atom):
    # A literal has a value; variables have none.
    return constant(atom.val) if hasattr(atom, 'val') else env[atom]

  for eqn in jaxpr.eqns:
    outputs = rule(eqn, [read(atom) for atom in eqn.invars])
    env.update(zip(eqn.outvars, outputs, strict=True))
  return [read(atom) for atom in jaxpr.outvars]
