"""Methods for graphs whose links go one way."""

import optax

from decopt import base
from decopt import faults as faults_lib
from decopt import requirements
from decopt import topology as topology_lib
from decopt.operators import push_sum


def sgp(
  optimizer: optax.GradientTransformation,
  topology: topology_lib.Topology,
  *,
  faults: faults_lib.Faults | None = None,
  axis_name: base.AxisName = base.WORKERS,
) -> optax.GradientTransformationExtraArgs:
  r"""Stochastic gradient push: decentralized SGD on one-way links.

  Let :math:`A` be the ``optimizer``, :math:`P^{(t)}` the weights of the
  ``topology``, whose columns sum to 1, :math:`z_i` the parameters of worker
  :math:`i`, which all start with :math:`w_i = 1`, and :math:`g_j` the gradient
  of worker :math:`j` at :math:`z_j`:

  .. math::

    \begin{align*}
      (x_i, w_i) &\leftarrow \textstyle\sum_j P^{(t)}_{ij}
        \big(w_j z_j + A(g_j), w_j\big)\\
      z_i &\leftarrow x_i / w_i .
    \end{align*}

  The mean over workers of :math:`x_i` moves by the mean of the updates, as in
  all-reduce, so that no worker counts for more than another. With a constant
  step size workers stop at a distance from the optimum in proportion to it. On
  doubly stochastic weights it is `diffusion`.

  An update moves :math:`z_i` by :math:`1 / w_i` of its length. A worker that
  hears little, on an irregular graph or with ``faults``, has a small
  :math:`w_i`, 0.01 or less after a few losses in a row: it takes long steps,
  and may diverge where `diffusion` does not. Take smaller steps, or let workers
  keep more of their own: ``decopt.lazy(topology)``.

  Args:
    optimizer: any optax optimizer.
    topology: column-stochastic and connected over its period.
    faults: a fault model, such as `decopt.link_drops`, whose lost weight stays
      with the sender; None loses nothing.
    axis_name: the axis of the workers.

  Returns:
    ``chain(optimizer, push_sum(topology))``.

  Raises:
    TypeError, ValueError: if ``topology`` is not as it must be.

  Example:
    >>> optimizer = decopt.sgp(optax.sgd(0.1), decopt.exponential(8))

  References:
    Assran et al., `Stochastic gradient push for distributed deep learning
    <https://arxiv.org/abs/1811.10792>`_, 2019; Nedic and Olshevsky, `Stochastic
    gradient-push for strongly convex functions on time-varying directed graphs
    <https://arxiv.org/abs/1406.2075>`_, 2016.
  """
  requirements.require(
    'sgp',
    topology,
    requirements.COLUMN_STOCHASTIC,
    requirements.CONNECTED,
    requirements.HOLDS if faults is None else requirements.KEEPS,
  )
  average = push_sum.push_sum(topology, faults=faults, axis_name=axis_name)
  return optax.chain(optimizer, average)
