"""Push-sum: exact averages on graphs whose links go one way."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from decopt import base
from decopt import collectives
from decopt import faults as faults_lib
from decopt import requirements
from decopt import reweighting
from decopt import topology as topology_lib


class PushSumState(NamedTuple):
  """State of `push_sum`.

  Attributes:
    weight: `w`, a scalar of this worker; 1 at the start.
    step: `t`, the number of exchanges so far; None if rounds are all the same.
    faults: state of the fault model; None without one.
  """

  weight: jax.Array
  step: base.Clock | None = None
  faults: base.Shared | None = None


def push_sum(
  topology: topology_lib.Topology,
  *,
  faults: faults_lib.Faults | None = None,
  axis_name: base.AxisName = base.WORKERS,
) -> optax.GradientTransformationExtraArgs:
  r"""Averages the iterates along one-way links, without a bias.

  Let :math:`P^{(t)}` be the weights of the ``topology`` in its round :math:`t`:
  how worker :math:`j` splits what it has, :math:`\sum_i P_{ij} = 1`. On such a
  graph some workers are heard more than others, and plain averaging would
  count them for more. So every worker also passes on a weight :math:`w_i`, 1
  at first, and the parameters are the ratio :math:`z_i`. With the incoming
  update :math:`u_i`,

  .. math::

    \begin{align*}
      x_i &\leftarrow w_i z_i + u_i\\
      (x_i, w_i) &\leftarrow \textstyle\sum_j P^{(t)}_{ij} (x_j, w_j)\\
      z_i &\leftarrow x_i / w_i .
    \end{align*}

  Let :math:`n` be the number of workers. The sums over workers of :math:`x_i`
  and :math:`w_i` are preserved, so the workers agree on their ratio, the true
  mean, whatever the graph is: :math:`\sum_i w_i z_i / n` is preserved, the
  plain mean of the :math:`z_i` is not. If rows sum to 1 too, all
  :math:`w_i` stay 1, and this is ``mix_iterates(gossip(topology))``.

  With ``faults`` each direction of a link fails on its own, and lost weight
  stays with its sender: :math:`P_{jj}` grows by :math:`P_{ij}`.

  One message for each neighbour and bucket of leaves carries :math:`x` and
  :math:`w`, which is in a bucket with leaves of its dtype.

  Args:
    topology: the graph with its weights; columns sum to 1 in every round.
    faults: a fault model, such as `decopt.link_drops`; None loses nothing.
    axis_name: the axis of the workers.

  Returns:
    A transformation that needs ``params``, for the end of a chain.

  Raises:
    TypeError: if ``topology`` is none, or ``faults`` no fault model.
    ValueError: if columns do not sum to 1, or if a worker may be left with
      nothing, so that its :math:`w_i` is zero; when traced, if the number of
      workers is not that of the axis.

  Example:
    >>> one_way = decopt.one_peer_exponential(8)
    >>> optimizer = optax.chain(optax.adam(1e-3), decopt.push_sum(one_way))

  References:
    Kempe et al., `Gossip-based computation of aggregate information
    <https://doi.org/10.1109/SFCS.2003.1238221>`_, 2003; Nedic and Olshevsky,
    `Stochastic gradient-push for strongly convex functions on time-varying
    directed graphs <https://arxiv.org/abs/1406.2075>`_, 2016.
  """
  left = requirements.HOLDS if faults is None else requirements.KEEPS
  requirements.require(
    'push_sum', topology, requirements.COLUMN_STOCHASTIC, left
  )
  if faults is not None:
    faults_lib.check('push_sum', faults)
  counts = topology.period > 1 or faults is not None

  def init(params):
    del params
    step = base.Clock.start() if counts else None
    lost = reweighting.start(faults, topology.workers)
    return PushSumState(jnp.ones(()), step, lost)

  def update(updates, state, params=None, **extra):
    del extra
    if params is None:
      raise ValueError(
        'push_sum averages parameters and got params=None; call '
        'optimizer.update(grads, state, params).'
      )
    step = state.step.count if counts else 0
    weights, lost = reweighting.reweigh(
      faults, state.faults, topology, step, directed=True
    )

    def numerator(z, u):
      dtype = base.wide(z.dtype)
      x = state.weight.astype(dtype) * z.astype(dtype) + u.astype(dtype)
      return x.astype(z.dtype)

    numerators, weight = collectives.mix(
      (jax.tree.map(numerator, params, updates), state.weight),
      topology,
      step=step,
      weights=weights,
      axis_name=axis_name,
    )

    def move(x, z, u):
      dtype = base.wide(z.dtype)
      ratio = x.astype(dtype) / weight.astype(dtype)
      return (ratio - z.astype(dtype)).astype(u.dtype)

    step = state.step.tick() if counts else None
    moves = jax.tree.map(move, numerators, params, updates)
    return moves, PushSumState(weight, step, lost)

  return optax.GradientTransformationExtraArgs(init, update)
