"""The image models: a perceptron with one hidden layer, and a small convnet."""

import math

import jax
from flax import linen as nn

from experiments.workloads import base
from experiments.workloads import convolution

NORMS = ('none', 'group', 'batch')


class MLP(nn.Module):
  """Pixels, one hidden layer of ReLUs, logits.

  Attributes:
    hidden: width of the hidden layer.
    classes: number of logits.
  """

  hidden: int = 64
  classes: int = 10

  @nn.compact
  def __call__(self, images: jax.Array, *, train: bool) -> jax.Array:
    """Maps images `[batch, ...]` to logits `[batch, classes]`."""
    del train  # training and inference are the same
    x = images.reshape(images.shape[0], -1)
    x = nn.relu(nn.Dense(self.hidden)(x))
    return nn.Dense(self.classes)(x)


class ConvNet(nn.Module):
  """Blocks of 3x3 convolution, norm, 2x2 max-pooling and ReLU, then a readout.

  Pooling comes before the ReLU: the values are the same, because both keep
  order, and three quarters of the ReLUs are saved.

  Attributes:
    channels: features of each block; each halves height and width.
    classes: number of logits.
    norm: 'none', 'group' (of at most 8 groups of channels; no state) or 'batch'
      (running mean and variance in the collection `batch_stats`).
    method: how to convolve, see `convolution.convolve`.
  """

  channels: tuple[int, ...] = (16, 32)
  classes: int = 10
  norm: str = 'none'
  method: str = 'auto'

  @nn.compact
  def __call__(self, images: jax.Array, *, train: bool) -> jax.Array:
    """Maps `[batch, height, width, channels]` to logits `[batch, classes]`."""
    base.check_name('norm', self.norm, NORMS)
    x = images
    for features in self.channels:
      x = convolution.Conv(
        features, use_bias=self.norm == 'none', method=self.method
      )(x)
      if self.norm == 'group':
        x = nn.GroupNorm(num_groups=math.gcd(8, features))(x)
      elif self.norm == 'batch':
        x = nn.BatchNorm(use_running_average=not train, momentum=0.9)(x)
      x = nn.relu(convolution.max_pool(x))
    return nn.Dense(self.classes)(x.reshape(x.shape[0], -1))
