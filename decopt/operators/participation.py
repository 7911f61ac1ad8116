"""Workers that take part in training now and then."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from decopt import base
from decopt import collectives
from decopt import faults as faults_lib
from decopt import reweighting
from decopt import stacking


class WhileActiveState(NamedTuple):
  """State of `while_active`.

  Attributes:
    step: `t`, steps so far.
    faults: state of the fault model.
    inner: `S`, state of the optimizer.
  """

  step: base.Clock
  faults: base.Shared
  inner: Any


def while_active(
  optimizer: optax.GradientTransformation,
  faults: faults_lib.Faults,
  *,
  axis_name: base.AxisName = base.WORKERS,
) -> optax.GradientTransformationExtraArgs:
  r"""Freezes a worker while a fault model says that it is away.

  Let :math:`(A, S_i)` be the ``optimizer`` with its state on worker :math:`i`,
  :math:`g_i` its gradient, and :math:`a_i^{(t)}` whether the ``faults`` have it
  take part at step :math:`t = 0, 1, \dots`

  .. math::

    (u_i, S_i) \leftarrow \begin{cases}
      A(g_i, S_i) & a_i^{(t)} \\
      (0, S_i) & \text{otherwise.}
    \end{cases}

  Operators with the same ``faults`` see the same absences, if they act at every
  step. An optimizer's schedule stands still with the rest of its state.

  Args:
    optimizer: any optax optimizer that does not communicate.
    faults: a fault model, such as `decopt.inactive_workers`.
    axis_name: the axis of the workers.

  Returns:
    A transformation, whose ``init`` runs inside the axis too.

  Raises:
    TypeError: for ``faults`` that are none.
    ValueError: in ``init``, for an optimizer whose state all workers share.

  Example:
    >>> faults = decopt.inactive_workers(leave=0.01, rejoin=0.1)
    >>> local = decopt.while_active(optax.adam(1e-3), faults)
    >>> optimizer = decopt.diffusion(local, decopt.ring(8), faults=faults)
  """
  faults_lib.check('while_active', faults)
  optimizer = optax.with_extra_args_support(optimizer)

  def init(params):
    workers = collectives.worker_count(axis_name)
    inner = optimizer.init(params)
    if any(stacking.shared_flags(inner)):
      raise ValueError(
        'while_active got an optimizer with a decopt.Clock or decopt.Shared in '
        'its state, which all workers share: a worker cannot stop it. Put it '
        'around the local optimizer only, as in '
        'dsgd(while_active(optax.sgd(0.1), faults), topology, faults=faults).'
      )
    return WhileActiveState(
      base.Clock.start(), reweighting.start(faults, workers), inner
    )

  def update(updates, state, params=None, **extra):
    workers = collectives.worker_count(axis_name)
    draw, memory = faults.draw(state.faults.value, state.step.count, workers)
    active = draw.active[collectives.worker_index(axis_name)]
    moved, inner = optimizer.update(updates, state.inner, params, **extra)

    def freeze(new, old):
      return jax.tree.map(lambda x, y: jnp.where(active, x, y), new, old)

    moved = freeze(moved, jax.tree.map(jnp.zeros_like, moved))
    inner = freeze(inner, state.inner)
    return moved, WhileActiveState(
      state.step.tick(), base.Shared(memory), inner
    )

  return optax.GradientTransformationExtraArgs(init, update)
