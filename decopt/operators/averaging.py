"""Two ways to average with others: along a graph, and with everybody."""

import dataclasses
import functools
from typing import NamedTuple

import optax

from decopt import base
from decopt import collectives
from decopt import faults as faults_lib
from decopt import requirements
from decopt import reweighting
from decopt import topology as topology_lib
from decopt.operators import delay as delay_lib

# Why faults need it.
_SYMMETRIC = dataclasses.replace(
  requirements.SYMMETRIC,
  otherwise='what a link loses could not return to both of its ends',
)


class GossipState(NamedTuple):
  """State of `gossip` on a graph that changes, with faults or with a delay.

  Attributes:
    step: `t`, the number of exchanges so far.
    faults: state of the fault model; None without one.
    in_flight: what has been sent and has not arrived; None without a delay.
  """

  step: base.Clock
  faults: base.Shared | None = None
  in_flight: delay_lib.InFlight | None = None


def gossip(
  topology: topology_lib.Topology,
  *,
  delay: int = 0,
  faults: faults_lib.Faults | None = None,
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

  With ``faults``, links fail in both directions together, and lost weight
  returns to both ends: for each lost pair :math:`i, j`, in this round,
  :math:`W_{ij} = W_{ji} = 0` and :math:`W_{ii}, W_{jj}` grow by what they were.
  Both promises above still hold. This needs symmetric rounds.

  With a ``delay`` of :math:`k`, what a worker holds is fresh and what it hears
  is :math:`k` applications old:

  .. math::

    x_i^{(t+1)} = (1 - a_i)\, x_i^{(t)} + s_i, \qquad
    s_i = \sum_{j \neq i} W^{(t-k)}_{ij} x_j^{(t-k)}, \quad
    a_i = \sum_{j \neq i} W^{(t-k)}_{ij},

  and :math:`s_i = a_i = 0` for :math:`t < k`. Consensus stays fixed, but the
  mean is *not* preserved: workers agree in the end, on a weighted mean of where
  they started. No delay makes it unstable, since a new value is always a mean
  of older ones: the companion matrix of the recursion is row-stochastic. (To
  delay the own value too, :math:`x^{(t+1)} = x^{(t)} + (W - I) x^{(t-k)}`, is
  not stable: on a ring it grows 1.15-fold in a step for :math:`k = 1`.)

  Args:
    topology: the graph with its weights; as many workers as the axis has.
    delay: :math:`k`, in applications.
    faults: a fault model, such as `decopt.link_drops`; None loses nothing.
    axis_name: the axis of the workers.

  Returns:
    An operator. Its state counts applications if the graph changes with time,
    holds what is in flight if there is a ``delay``, and the state of the
    ``faults``; without these it is empty.

  Raises:
    TypeError: if ``delay`` is not an int, or ``faults`` no fault model.
    ValueError: if rows do not sum to 1, if weights are not symmetric and there
      are ``faults``, or for a negative ``delay``; when traced, if the number of
      workers is not that of the axis.

  Example:
    >>> optimizer = optax.chain(
    ...   optax.adam(1e-3), decopt.mix_iterates(decopt.gossip(decopt.ring(8)))
    ... )

  References:
    Xiao and Boyd, `Fast linear iterations for distributed averaging
    <https://doi.org/10.1016/j.sysconle.2004.02.022>`_, 2004.
  """
  delay = delay_lib.check(delay)
  requirements.require(
    'gossip', topology, requirements.ROW_STOCHASTIC, push_sum=True
  )
  if faults is not None:
    faults_lib.check('gossip', faults)
    requirements.require(
      'gossip with faults', topology, _SYMMETRIC, push_sum=True
    )
  reweigh = functools.partial(
    reweighting.reweigh, faults, topology=topology, directed=False
  )
  return _averaging(topology, delay, faults, reweigh, axis_name)


def renormalized_gossip(
  topology: topology_lib.Topology,
  faults: faults_lib.Faults,
  *,
  axis_name: base.AxisName = base.WORKERS,
) -> base.Operator:
  r"""Averages what arrives, and lets the mean drift; for study.

  Let :math:`W^{(t)}` be the weights of the ``topology`` in its round :math:`t`
  and :math:`m_{ij}` whether the ``faults`` let pass what :math:`j` sends to
  :math:`i`, each direction of a link on its own, with :math:`m_{ii} = 1`:

  .. math::

    x_i \leftarrow \frac{\sum_j m_{ij} W^{(t)}_{ij} x_j}
      {\sum_j m_{ij} W^{(t)}_{ij}} .

  The obvious thing to do, and a common one. It fixes consensus, but the mean
  over workers is *not* preserved: workers agree on a random point near it.
  `gossip` and `push_sum` preserve it under the same faults.

  Args:
    topology: the graph with its weights; as many workers as the axis has.
    faults: a fault model, such as `decopt.link_drops`.
    axis_name: the axis of the workers.

  Returns:
    An operator, with the state of `gossip`.

  Raises:
    TypeError: if ``faults`` are no fault model.
    ValueError: if rows do not sum to 1; when traced, if the number of workers
      is not that of the axis.

  Example:
    >>> operator = decopt.renormalized_gossip(
    ...   decopt.ring(8), decopt.link_drops(0.1)
    ... )
  """
  requirements.require(
    'renormalized_gossip', topology, requirements.ROW_STOCHASTIC
  )
  faults_lib.check('renormalized_gossip', faults)
  reweigh = functools.partial(
    reweighting.reweigh,
    faults,
    topology=topology,
    rule=reweighting.renormalized,
    directed=True,
  )
  return _averaging(topology, 0, faults, reweigh, axis_name)


def _averaging(topology, delay, faults, reweigh, axis_name) -> base.Operator:
  """The operator whose rounds have the weights that ``reweigh`` gives them."""
  counts = topology.period > 1 or delay > 0 or faults is not None

  def init(params):
    if not counts:
      return optax.EmptyState()
    return GossipState(
      base.Clock.start(),
      reweighting.start(faults, topology.workers),
      delay_lib.start(params, delay) if delay else None,
    )

  def update(tree, state, params=None, **extra):
    del params, extra
    if not counts:
      return collectives.mix(tree, topology, axis_name=axis_name), state
    step = state.step.count
    weights, lost = reweigh(state.faults, step=step)
    mixed = collectives.mix(
      tree,
      topology,
      step=step,
      weights=weights,
      own=not delay,
      axis_name=axis_name,
    )
    in_flight = state.in_flight
    if delay:
      shares = delay_lib.shares_of_others(topology, step, weights)
      share = shares[collectives.worker_index(axis_name)]
      sent = delay_lib.InFlight(mixed, share)
      arrived, in_flight = delay_lib.exchange(in_flight, step % delay, sent)
      mixed = delay_lib.join(tree, arrived)
    return mixed, GossipState(state.step.tick(), lost, in_flight)

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
