"""Synchronous methods: everybody averages at every step."""

import optax

from decopt import base
from decopt import faults as faults_lib
from decopt import lifts
from decopt import requirements
from decopt import topology as topology_lib
from decopt.operators import averaging


def all_reduce_sgd(
  optimizer: optax.GradientTransformation,
  *,
  axis_name: base.AxisName = base.WORKERS,
) -> optax.GradientTransformationExtraArgs:
  r"""Data parallel training: the gradient is averaged over all workers.

  Let :math:`A` be the ``optimizer``, :math:`x` the parameters, which are and
  stay the same on all :math:`n` workers, and :math:`g_j` the gradient of
  worker :math:`j`:

  .. math:: x \leftarrow x + A\big(\tfrac1n \textstyle\sum_j g_j\big) .

  The baseline of every comparison: one step with the union of all batches, if
  these are equally large.

  Args:
    optimizer: any optax optimizer.
    axis_name: the axis of the workers.

  Returns:
    ``chain(all_reduce(), optimizer)``.

  Example:
    >>> optimizer = decopt.all_reduce_sgd(optax.sgd(0.1, momentum=0.9))

  References:
    Goyal et al., `Accurate, large minibatch SGD
    <https://arxiv.org/abs/1706.02677>`_, 2017.
  """
  return optax.chain(averaging.all_reduce(axis_name=axis_name), optimizer)


def dsgd(
  optimizer: optax.GradientTransformation,
  topology: topology_lib.Topology,
  *,
  faults: faults_lib.Faults | None = None,
  axis_name: base.AxisName = base.WORKERS,
) -> optax.GradientTransformationExtraArgs:
  r"""Decentralized SGD (D-PSGD): average with neighbours while adapting.

  Let :math:`A` be the ``optimizer``, :math:`W` the weights of the
  ``topology``, and :math:`g_i` the gradient of worker :math:`i` at
  :math:`x_i`:

  .. math:: x_i \leftarrow \textstyle\sum_j W_{ij} x_j + A(g_i) .

  The exchange does not wait for the gradient. With a constant step size
  workers stay apart in proportion to it, and stop at a distance from the
  optimum that grows with how different their data are.

  Args:
    optimizer: any optax optimizer.
    topology: doubly stochastic and connected over its period.
    faults: what goes wrong in the exchanges, as for `decopt.gossip`; put
      `decopt.while_active` around the optimizer to stop it with its worker.
    axis_name: the axis of the workers.

  Returns:
    ``chain(optimizer, mix_params(gossip(topology)))``.

  Raises:
    TypeError, ValueError: if ``topology`` is not as it must be.

  Example:
    >>> optimizer = decopt.dsgd(optax.sgd(0.1), decopt.ring(8))

  References:
    Lian et al., `Can decentralized algorithms outperform centralized
    algorithms? <https://arxiv.org/abs/1705.09056>`_, 2017.
  """
  requirements.require_averaging('dsgd', topology)
  gossip = averaging.gossip(topology, faults=faults, axis_name=axis_name)
  return optax.chain(optimizer, lifts.mix_params(gossip))


def diffusion(
  optimizer: optax.GradientTransformation,
  topology: topology_lib.Topology,
  *,
  faults: faults_lib.Faults | None = None,
  axis_name: base.AxisName = base.WORKERS,
) -> optax.GradientTransformationExtraArgs:
  r"""Diffusion, adapt then combine: average the iterates after adapting.

  Let :math:`A` be the ``optimizer``, :math:`W` the weights of the
  ``topology``, and :math:`g_j` the gradient of worker :math:`j` at
  :math:`x_j`:

  .. math:: x_i \leftarrow \textstyle\sum_j W_{ij} \big(x_j + A(g_j)\big) .

  Allows larger steps than `dsgd`, at the same number of bytes. On the complete
  graph with ``optax.sgd`` it is `all_reduce_sgd`.

  Args:
    optimizer: any optax optimizer.
    topology: doubly stochastic and connected over its period.
    faults: what goes wrong in the exchanges, as for `decopt.gossip`; put
      `decopt.while_active` around the optimizer to stop it with its worker.
    axis_name: the axis of the workers.

  Returns:
    ``chain(optimizer, mix_iterates(gossip(topology)))``.

  Raises:
    TypeError, ValueError: if ``topology`` is not as it must be.

  Example:
    >>> optimizer = decopt.diffusion(optax.adam(1e-3), decopt.ring(8))

  References:
    Chen and Sayed, `Diffusion adaptation strategies for distributed
    optimization and learning over networks
    <https://arxiv.org/abs/1111.0034>`_, 2012.
  """
  requirements.require_averaging('diffusion', topology)
  gossip = averaging.gossip(topology, faults=faults, axis_name=axis_name)
  return optax.chain(optimizer, lifts.mix_iterates(gossip))
