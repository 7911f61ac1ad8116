"""Gossip between machines, and the mean within each."""

from typing import NamedTuple

import optax

from decopt import base
from decopt import levels
from decopt import requirements
from decopt import topology as topology_lib


class HierarchicalGossipState(NamedTuple):
  """State of `hierarchical_gossip` on a graph that changes with time.

  Attributes:
    step: `t`, the number of exchanges so far.
  """

  step: base.Clock


def hierarchical_gossip(
  topology: topology_lib.Topology,
  workers_per_machine: int,
  *,
  axis_name: base.AxisName = base.WORKERS,
) -> base.Operator:
  r"""Averages within each machine, and with the neighbours of the machine.

  Let :math:`B^{(0)}, \dots, B^{(\tau-1)}` be the weights of the ``topology``
  of machines with its period :math:`\tau`, :math:`v` the
  ``workers_per_machine``, and :math:`x_{m,k}` the tree of worker
  :math:`m v + k`, the :math:`k`-th of machine :math:`m`. The :math:`t`-th
  application gives all workers of machine :math:`m`

  .. math::

    x_{m,k} \leftarrow \textstyle\sum_{m'} B^{(t \bmod \tau)}_{m m'}
      \tfrac1v \sum_{k'} x_{m',k'} ,

  gossip with the weights :math:`B \otimes J_v` for :math:`J_v` the
  :math:`v \times v` matrix of entries :math:`1 / v`. Consensus is fixed, since
  rows sum to 1; the mean over workers is preserved if columns do too, and
  workers of a machine agree afterwards.

  A machine sends its mean once to each neighbour, not once for each of its
  workers: on a mesh with one worker a device each worker sends :math:`1 / v` of
  its bytes to a peer in each neighbour machine, between a reduce-scatter and an
  all-gather inside the machine. Several workers on a device, a whole number of
  devices to a machine or of machines to a device, send no more than that. Other
  placements, and a `jax.vmap`, `jax.pmap` or `jax.shard_map` of one's own, give
  the same numbers with more messages.

  Under a `jax.shard_map` or `jax.vmap` of one's own over two axes, `all_reduce`
  on the inner and `gossip` on the outer axis are the same, with all bytes of
  every worker between machines.

  Args:
    topology: the graph of the machines with its weights. Machine `m` has the
      workers `m * workers_per_machine` and the following.
    workers_per_machine: how many workers make a machine, `v`. On a mesh of
      machines (`make_mesh(machines=...)`) it is the size of the second axis.
    axis_name: the axis of the workers.

  Returns:
    An operator. Its state counts applications if the graph changes with time
    and is empty otherwise.

  Raises:
    ValueError: if rows do not sum to 1, or machines have no workers; when
      traced, if the workers do not divide into machines, or the number of
      machines is not that of the topology.

  Example:
    >>> between = decopt.one_peer_exponential(4)  # 4 machines of 8 workers
    >>> operator = decopt.hierarchical_gossip(between, workers_per_machine=8)
    >>> optimizer = optax.chain(optax.adam(1e-3), decopt.mix_iterates(operator))

    On two axes of one's own:

    >>> by_hand = optax.chain(
    ...   decopt.all_reduce(axis_name='workers'),
    ...   decopt.gossip(between, axis_name='machines'),
    ... )

  References:
    Lin et al., `Don't use large mini-batches, use local SGD
    <https://arxiv.org/abs/1808.07217>`_, 2020 (hierarchical local SGD);
    Assran et al., `Stochastic gradient push for distributed deep learning
    <https://arxiv.org/abs/1811.10792>`_, 2019 (gossip between machines of
    workers that all-reduce).
  """
  if workers_per_machine < 1:
    raise ValueError(
      f'hierarchical_gossip got workers_per_machine={workers_per_machine}; a '
      'machine has at least 1 worker.'
    )
  requirements.require(
    'hierarchical_gossip', topology, requirements.ROW_STOCHASTIC
  )
  varies = topology.period > 1

  def init(params):
    del params
    if not varies:
      return optax.EmptyState()
    return HierarchicalGossipState(base.Clock.start())

  def update(tree, state, params=None, **extra):
    del params, extra
    mixed = levels.mix_machines(
      tree,
      topology,
      workers_per_machine,
      step=state.step.count if varies else 0,
      axis_name=axis_name,
    )
    if not varies:
      return mixed, state
    return mixed, HierarchicalGossipState(state.step.tick())

  return optax.GradientTransformationExtraArgs(init, update)
