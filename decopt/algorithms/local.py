"""Local steps: workers train alone for a while, then meet."""

import optax

from decopt import base
from decopt import faults as faults_lib
from decopt import lifts
from decopt import requirements
from decopt import topology as topology_lib
from decopt.operators import averaging
from decopt.operators import combinators


def local_sgd(
  optimizer: optax.GradientTransformation,
  period,
  *,
  schedule: optax.Schedule | None = None,
  axis_name: base.AxisName = base.WORKERS,
) -> optax.GradientTransformationExtraArgs:
  r"""Local SGD: all workers average their parameters every ``period`` steps.

  Let :math:`A` be the ``optimizer``, :math:`H` the ``period`` and :math:`g_j`
  the gradient of worker :math:`j` at :math:`x_j`. At step :math:`t = 1, 2,
  \dots`

  .. math::

    x_i \leftarrow \begin{cases}
      \tfrac1n \sum_j \big(x_j + A(g_j)\big) & t \in \{H, 2H, \dots\} \\
      x_i + A(g_i) & \text{otherwise.}
    \end{cases}

  The state of the optimizer, such as a momentum, stays local.

  Args:
    optimizer: any optax optimizer.
    period: :math:`H`, as for `decopt.every`; 1 averages at every step.
    schedule: as for `decopt.every`.
    axis_name: the axis of the workers.

  Returns:
    ``chain(optimizer, mix_iterates(every(all_reduce(), period)))``.

  Raises:
    TypeError, ValueError: for a ``period`` that is none.

  Example:
    >>> optimizer = decopt.local_sgd(optax.sgd(0.1), period=8)

  References:
    Stich, `Local SGD converges fast and communicates little
    <https://arxiv.org/abs/1805.09767>`_, 2019.
  """
  average = averaging.all_reduce(axis_name=axis_name)
  meet = combinators.every(average, period, schedule=schedule)
  return optax.chain(optimizer, lifts.mix_iterates(meet))


def decentralized_local_sgd(
  optimizer: optax.GradientTransformation,
  topology: topology_lib.Topology,
  period,
  *,
  schedule: optax.Schedule | None = None,
  faults: faults_lib.Faults | None = None,
  axis_name: base.AxisName = base.WORKERS,
) -> optax.GradientTransformationExtraArgs:
  r"""Decentralized local SGD: neighbours average every ``period`` steps.

  Let :math:`A` be the ``optimizer``, :math:`H` the ``period``, :math:`W` the
  weights of the ``topology`` and :math:`g_j` the gradient of worker :math:`j`
  at :math:`x_j`. At step :math:`t = 1, 2, \dots`

  .. math::

    x_i \leftarrow \begin{cases}
      \sum_j W_{ij} \big(x_j + A(g_j)\big) & t \in \{H, 2H, \dots\} \\
      x_i + A(g_i) & \text{otherwise.}
    \end{cases}

  A graph that changes with time moves on once a meeting. The state of the
  optimizer stays local.

  Args:
    optimizer: any optax optimizer.
    topology: doubly stochastic and connected over its period.
    period: :math:`H`, as for `decopt.every`; 1 is `decopt.diffusion`.
    schedule: as for `decopt.every`.
    faults: what goes wrong in the meetings, as for `decopt.gossip`; their
      rounds are meetings.
    axis_name: the axis of the workers.

  Returns:
    ``chain(optimizer, mix_iterates(every(gossip(topology), period)))``.

  Raises:
    TypeError, ValueError: for a ``period`` that is none, or if ``topology``
      is not as it must be.

  Example:
    >>> optimizer = decopt.decentralized_local_sgd(
    ...     optax.sgd(0.1), decopt.ring(8), period=8)

  References:
    Koloskova et al., `A unified theory of decentralized SGD with changing
    topology and local updates <https://arxiv.org/abs/2003.10422>`_, 2020.
  """
  requirements.require_averaging('decentralized_local_sgd', topology)
  gossip = averaging.gossip(topology, faults=faults, axis_name=axis_name)
  meet = combinators.every(gossip, period, schedule=schedule)
  return optax.chain(optimizer, lifts.mix_iterates(meet))
