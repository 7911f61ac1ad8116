"""Two verbs that carry an operator from updates to parameters.

An optax chain maps gradients to updates ``u``, and the next iterate is
``x + u``. Decentralized methods average *iterates*. A lift returns the update
that makes them land where the operator ``T`` says:

| chain | next iterate | in the literature |
|---|---|---|
| ``chain(T, adapt)`` | ``x + A(T g)`` | data parallel, gradient gossip |
| ``chain(adapt, T)`` | ``x + T A(g)`` | averaged updates |
| ``chain(adapt, mix_params(T))`` | ``T x + A(g)`` | D-PSGD, consensus |
| ``chain(adapt, mix_iterates(T))`` | ``T (x + A(g))`` | diffusion, local SGD |

A lift comes last: what follows it would scale the averaging as well.
"""

import optax

from decopt import base


def mix_params(
  operator: base.Operator,
) -> optax.GradientTransformationExtraArgs:
  r"""Averages the parameters while the update is applied.

  Let :math:`T` be the ``operator``, :math:`x` the parameters and :math:`u`
  the incoming update. It is replaced by

  .. math:: u \leftarrow u + (T(x) - x)

  so that the next iterate is :math:`T(x) + u`. The averaging does not depend
  on the gradient. Consensus is reached to one ulp, since :math:`T(x) - x` is
  rounded. The mean over workers is preserved if ``operator`` preserves it.

  Args:
    operator: a `decopt.Operator`.

  Returns:
    A transformation that needs ``params``, for the end of a chain. Its state
    is that of the operator.

  Example:
    >>> consensus = decopt.mix_params(decopt.gossip(decopt.ring(8)))
    >>> dsgd = optax.chain(optax.sgd(0.1), consensus)
  """

  def update(updates, state, params=None, **extra):
    _require_params('mix_params', params)
    mixed, state = operator.update(params, state, params, **extra)
    drift = optax.tree.sub(mixed, params)
    return optax.tree.add(updates, drift), state

  return optax.GradientTransformationExtraArgs(operator.init, update)


def mix_iterates(
  operator: base.Operator,
) -> optax.GradientTransformationExtraArgs:
  r"""Averages the iterates after the update has been applied.

  Let :math:`T` be the ``operator``, :math:`x` the parameters and :math:`u`
  the incoming update. It is replaced by

  .. math:: u \leftarrow T(x + u) - x

  so that the next iterate is :math:`T(x + u)`: adapt, then combine. Consensus
  is reached to one ulp. The mean over workers is preserved if ``operator``
  preserves it.

  Args:
    operator: a `decopt.Operator`.

  Returns:
    A transformation that needs ``params``, for the end of a chain. Its state
    is that of the operator.

  Example:
    >>> average = decopt.every(decopt.all_reduce(), 10)
    >>> local_sgd = optax.chain(optax.sgd(0.1), decopt.mix_iterates(average))
  """

  def update(updates, state, params=None, **extra):
    _require_params('mix_iterates', params)
    iterate = optax.apply_updates(params, updates)
    mixed, state = operator.update(iterate, state, params, **extra)
    return optax.tree.sub(mixed, params), state

  return optax.GradientTransformationExtraArgs(operator.init, update)


def _require_params(name, params) -> None:
  if params is None:
    raise ValueError(
      f'{name} averages parameters and got params=None; call '
      'optimizer.update(grads, state, params).'
    )
