"""From a flax module that gives logits to the functions of a workload.

Classification of images and prediction of the next byte differ only in what of
a batch goes in and what should come out, so both are written once, here.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn

from experiments.workloads import base


def supervised(
  name: str,
  module: nn.Module,
  view: Callable[[base.Batch], tuple[jax.Array, jax.Array]],
  *,
  train: dict[str, np.ndarray],
  test: dict[str, np.ndarray],
  labels: np.ndarray,
) -> base.Workload:
  r"""A workload whose loss is the mean cross-entropy of a module's logits.

  With logits :math:`z` of shape `[..., classes]` and targets :math:`y` of shape
  `[...]`,

  .. math::

    \text{loss} = \operatorname{mean}\Big(
      \log \textstyle\sum_c e^{z_c} - z_y \Big)\ \text{nats},
    \qquad
    \text{accuracy} = \operatorname{mean}\big(\arg\max_c z_c = y\big)

  where the means run over all targets of the batch.

  Args:
    name: name of the workload.
    module: called as `module(inputs, train=bool)`; variables other than
      parameters become the workload's `model_state`.
    view: `view(batch) -> (inputs, targets)`.
    train: see `Workload`.
    test: see `Workload`.
    labels: see `Workload`.

  Returns:
    The workload.
  """
  one = {field: array[:1] for field, array in train.items()}

  @jax.jit  # one compilation instead of one for each small array
  def init(key):
    variables = dict(module.init(key, view(one)[0], train=False))
    return variables.pop('params'), variables

  def loss(params, model_state, batch, key):
    del key  # none of the modules draws noise
    inputs, targets = view(batch)
    logits, model_state = module.apply(
      {'params': params, **model_state},
      inputs,
      train=True,
      mutable=list(model_state),
    )
    return _cross_entropy(logits, targets), model_state

  def evaluate(params, model_state, batch):
    inputs, targets = view(batch)
    variables = {'params': params, **model_state}
    logits = module.apply(variables, inputs, train=False)
    correct = jnp.argmax(logits, axis=-1) == targets
    return {
      'loss': _cross_entropy(logits, targets),
      'accuracy': jnp.mean(correct, dtype=jnp.float32),
    }

  make = functools.partial(base.Workload, name, train, test, labels)
  return make(init=init, loss=loss, evaluate=evaluate)


def _cross_entropy(logits, targets):
  return jnp.mean(
    optax.softmax_cross_entropy_with_integer_labels(logits, targets)
  )
