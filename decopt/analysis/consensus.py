"""How far workers are apart."""

import jax
import jax.numpy as jnp

from decopt import base
from decopt import collectives


def consensus_distance(
  params, *, axis_name: base.AxisName = base.WORKERS
) -> jax.Array:
  r"""Returns the root mean square distance of workers from their mean.

  .. math::

    \Xi = \Big(\tfrac1n \sum_i \lVert x_i - \bar x \rVert^2\Big)^{1/2},
    \qquad \bar x = \tfrac1n \sum_j x_j ,

  for the parameters :math:`x_i` of worker :math:`i`, in their own units. Zero,
  up to rounding, if and only if all workers hold the same.

  Args:
    params: the parameters of this worker.
    axis_name: the axis of the workers.

  Returns:
    A float32 scalar (float64 for such parameters), the same on all workers.

  Example:
    >>> import jax.numpy as jnp
    >>> distance = decopt.spmd(decopt.consensus_distance)
    >>> distance(jnp.array([[0.0], [2.0]]))
    Array([1., 1.], dtype=float32)

  References:
    Kong et al., `Consensus control for decentralized deep learning
    <https://arxiv.org/abs/2102.04828>`_, 2021.
  """
  wide = jax.tree.map(lambda x: x.astype(base.wide(x.dtype)), params)
  centre = collectives.mean(wide, axis_name=axis_name)
  squares = [
    jnp.sum(jnp.square(jnp.abs(x - c)))
    for x, c in zip(jax.tree.leaves(wide), jax.tree.leaves(centre), strict=True)
  ]
  return jnp.sqrt(collectives.mean(sum(squares, 0.0), axis_name=axis_name))
