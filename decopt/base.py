"""The one noun of decopt: an operator, and the contract that it keeps.

An *operator* is an ordinary optax gradient transformation that maps any tree
shaped like the parameters to another one, seen from one worker's chair, and
that may talk to the other workers through a named axis. Placed in a chain it
acts on gradients or updates; the lifts of `decopt.lifts` carry it to the
parameters.
"""

import dataclasses
from collections.abc import Hashable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import optax

AxisName: TypeAlias = Hashable

#: Default name of the mapped axis whose members are the workers.
WORKERS = 'workers'

#: A map :math:`T` on trees shaped like the parameters.
#:
#:   ``init(tree) -> state``
#:   ``update(tree, state, params=None, **extra) -> (tree, state)``
#:
#: The contract, tested for every operator of the library:
#:
#: 1. structure, shapes and dtypes of the tree are kept;
#: 2. the state keeps its structure, shapes and dtypes, so that it is safe in
#:    `jax.lax.scan` and `jax.lax.cond`;
#: 3. it is written from one worker's point of view, inside an axis called
#:    ``axis_name``;
#: 4. which collectives run depends on counters, never on data: a collective
#:    that only some workers enter passes in simulation and hangs on devices;
#: 5. exact averaging leaves consensus fixed: :math:`T(x) = x` when all workers
#:    hold the same :math:`x`;
#: 6. the docstring says whether the mean over workers is preserved.
Operator: TypeAlias = optax.GradientTransformationExtraArgs


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Clock:
  """A counter that is the same on all workers, and is known to be.

  A plain counter in an optimizer state gets a worker axis like everything
  else, and `jax.vmap` then turns a conditional on it into a select: both
  branches run, and "every H steps" communicates every step. `decopt.spmd`
  gives a `Clock` no worker axis, so a conditional on it stays one, with the
  collective inside, in every layout.

  Under a `jax.vmap` or `jax.pmap` of one's own a clock is an ordinary pytree
  with one leaf, stacked like the others; the numbers are the same.

  Attributes:
    count: int32 scalar.
  """

  count: jax.Array

  @classmethod
  def start(cls, count=0) -> 'Clock':
    """Returns a clock that shows ``count``."""
    return cls(jnp.asarray(count, jnp.int32))

  def tick(self) -> 'Clock':
    """Returns the clock one step later."""
    return Clock(optax.safe_increment(self.count))


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Shared:
  """Arrays that are the same on all workers, and are known to be.

  What a `Clock` is for a counter, for any arrays: the state of chance that all
  workers follow together, such as which links are down. Like a clock it has no
  worker axis. Compute it from clocks, constants and itself only. A simulation
  refuses what comes from data; a mesh cannot see where it comes from.

  Attributes:
    value: a tree of arrays.
  """

  value: Any


def wide(dtype) -> jnp.dtype:
  """Returns the dtype in which to compute with arrays of ``dtype``.

  That is float32 for narrower ones, whose sums would lose digits. No implicit
  promotion decides it, so that the library runs under the strict rules of
  `jax.numpy_dtype_promotion`.
  """
  return jnp.dtype(dtype if jnp.finfo(dtype).bits >= 32 else jnp.float32)


def is_shared(node) -> bool:
  """Says whether a node is a `Clock` or a `Shared`; for ``is_leaf``."""
  return isinstance(node, (Clock, Shared))
