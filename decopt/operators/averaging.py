"""Two ways to average with others: along a graph, and with everybody."""

from typing import NamedTuple

import optax

from decopt import base
from decopt import collectives
from decopt import topology as topology_lib


class GossipState(NamedTuple):
  """State of `gossip` on a graph that changes with time.

  Attributes:
    step: `t`, the number of exchanges so far.
  """

  step: base.Clock


def gossip(
  topology: topology_lib.Topology,
  *,
  axis_name: base.AxisName = base.WORKERS,
) -> base.Operator:
  r"""Averages with the neighbours in a graph.

  Let :math:`W^{(0)}, \dots, W^{(\tau-1)}` be the weights of the ``topology``
  with its period :math:`\tau`, and :math:`x_j` the tree of worker :math:`j`.
  The :math:`t`-th application gives worker :math:`i`

  .. math:: x_i \leftarrow \textstyle\sum_j W^{(t \bmod \tau)}_{ij} x_j .

  It fixes consensus, since rows sum to 1, and preserves the mean over workers
  if columns do too. On a mesh one message leaves a worker for each of its
  neighbours and each bucket of leaves; its bytes are those of the leaves.

  Args:
    topology: the graph with its weights; as many workers as the axis has.
    axis_name: the axis of the workers.

  Returns:
    An operator. Its state counts applications if the graph changes with time
    and is empty otherwise.

  Raises:
    ValueError: if rows do not sum to 1; when traced, if the number of workers
      is not that of the axis.

  Example:
    >>> optimizer = optax.chain(
    ...   optax.adam(1e-3), decopt.mix_iterates(decopt.gossip(decopt.ring(8)))
    ... )

  References:
    Xiao and Boyd, `Fast linear iterations for distributed averaging
    <https://doi.org/10.1016/j.sysconle.2004.02.022>`_, 2004.
  """
  if not topology.is_row_stochastic():
    raise ValueError(
      f'gossip needs weights whose rows sum to 1, but those of topology '
      f'{topology.name!r} do not: averaging would change workers that agree. '
      'Use metropolis(graph), which gives weights to any undirected graph.'
    )
  varies = topology.period > 1

  def init(params):
    del params
    return GossipState(base.Clock.start()) if varies else optax.EmptyState()

  def update(tree, state, params=None, **extra):
    del params, extra
    step = state.step.count if varies else 0
    mixed = collectives.mix(tree, topology, step=step, axis_name=axis_name)
    return mixed, GossipState(state.step.tick()) if varies else state

  return optax.GradientTransformationExtraArgs(init, update)


def all_reduce(*, axis_name: base.AxisName = base.WORKERS) -> base.Operator:
  r"""Averages with all workers.

  Let :math:`x_j` be the tree of worker :math:`j` of :math:`n`. Every worker
  gets

  .. math:: x_i \leftarrow \tfrac1n \textstyle\sum_j x_j .

  The mean is preserved, and all workers hold the same afterwards.

  Args:
    axis_name: the axis of the workers.

  Returns:
    An operator without state.

  Example:
    >>> data_parallel = optax.chain(decopt.all_reduce(), optax.adam(1e-3))
  """

  def init(params):
    del params
    return optax.EmptyState()

  def update(tree, state, params=None, **extra):
    del params, extra
    return collectives.mean(tree, axis_name=axis_name), state

  return optax.GradientTransformationExtraArgs(init, update)
