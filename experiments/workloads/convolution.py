"""Convolutions that stay fast when every worker has its own kernel.

On a CPU, XLA runs a plain convolution slowly in the two places where simulated
training puts it: inside a loop, and under `vmap` over its kernels, which makes
a grouped convolution. A matrix product is slow in neither. So here, on a CPU,
a convolution gathers the patch under the kernel at each position and multiplies
them all by the kernel as a matrix; on accelerators it is the native one.

Both take the same kernel and agree within float rounding. The functions are
plain JAX; `Conv` wraps them with the parameters of `flax.linen.Conv`.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import lax

from experiments.workloads import base

METHODS = ('auto', 'patches', 'native')
Padding = str | tuple[tuple[int, int], tuple[int, int]]


def patches(
  images: jax.Array,
  kernel_size: tuple[int, int],
  strides: tuple[int, int] = (1, 1),
  padding: Padding = 'SAME',
) -> jax.Array:
  """Gathers what lies under the kernel at each position.

  Built from shifted slices: on a CPU that is about twice as fast, with its
  gradient, as `lax.conv_general_dilated_patches`.

  Args:
    images: `[batch, height, width, channels]`.
    kernel_size: rows and columns of the kernel.
    strides: rows and columns between neighbouring positions.
    padding: 'SAME', 'VALID', or ((top, bottom), (left, right)).

  Returns:
    `[batch, rows, columns, kernel rows * kernel columns * channels]`, in the
    order of a flattened kernel `[kernel rows, kernel columns, channels, out]`.

  Example:
    >>> image = jnp.arange(9.0).reshape(1, 3, 3, 1)
    >>> patches(image, (2, 2), padding='VALID')[0, 0]
    Array([[0., 1., 3., 4.],
           [1., 2., 4., 5.]], dtype=float32)
  """
  size = images.shape[1:3]
  if isinstance(padding, str):
    padding = lax.padtype_to_pads(size, kernel_size, strides, padding)
  images = jnp.pad(images, ((0, 0), *padding, (0, 0)))
  # Room for the kernel's first corner, which is also the length of each slice.
  rows = images.shape[1] - kernel_size[0] + 1
  columns = images.shape[2] - kernel_size[1] + 1
  shifted = [
    images[:, i : i + rows : strides[0], j : j + columns : strides[1]]
    for i in range(kernel_size[0])
    for j in range(kernel_size[1])
  ]
  return jnp.concatenate(shifted, axis=-1)


def convolve(
  images: jax.Array,
  kernel: jax.Array,
  strides: tuple[int, int] = (1, 1),
  padding: Padding = 'SAME',
  method: str = 'auto',
) -> jax.Array:
  r"""Cross-correlates images with a kernel, as neural networks do.

  .. math::

    y_{b,r,c,o} = \sum_{i,j,k} K_{i,j,k,o}\; x_{b,\,s_1 r + i,\,s_2 c + j,\,k}

  with :math:`x` the padded ``images``, :math:`K` the ``kernel`` and :math:`s`
  the ``strides``.

  Args:
    images: `[batch, height, width, channels]`.
    kernel: `[kernel rows, kernel columns, channels, out]`.
    strides: rows and columns between neighbouring positions.
    padding: 'SAME', 'VALID', or ((top, bottom), (left, right)).
    method: 'patches' (a matrix product), 'native' (XLA's convolution), or
      'auto': patches if the default backend is a CPU, else native.

  Returns:
    `[batch, rows, columns, out]`.

  Raises:
    ValueError: if `method` is unknown or the shapes do not fit.
  """
  base.check_name('convolution method', method, METHODS)
  if images.ndim != 4 or images.shape[-1] != kernel.shape[-2]:
    raise ValueError(
      f'the kernel {kernel.shape} needs images [batch, height, width, '
      f'{kernel.shape[-2]}] but got {images.shape}'
    )
  if method == 'auto':
    method = 'patches' if jax.default_backend() == 'cpu' else 'native'
  if method == 'native':
    layout = ('NHWC', 'HWIO', 'NHWC')
    return lax.conv_general_dilated(
      images, kernel, strides, padding, dimension_numbers=layout
    )
  taps = patches(images, kernel.shape[:2], strides, padding)
  # As plain matrices: with positions in several axes, the product under vmap
  # takes twice the time.
  flat = taps.reshape(-1, taps.shape[-1]) @ kernel.reshape(taps.shape[-1], -1)
  return flat.reshape(*taps.shape[:-1], -1)


def max_pool(images: jax.Array, window: int = 2) -> jax.Array:
  """Largest value of each window, without overlap.

  Equals `flax.linen.max_pool` with equal window and strides and no padding, but
  reduces an axis, which is fast under vmap and in loops. Where values tie, the
  gradient is shared among them instead of going to the first.

  Args:
    images: `[batch, height, width, channels]`.
    window: rows and columns of a window; what is left over is dropped.

  Returns:
    `[batch, height // window, width // window, channels]`.
  """
  batch, height, width, channels = images.shape
  rows, columns = height // window, width // window
  images = images[:, : rows * window, : columns * window]
  tiles = images.reshape(batch, rows, window, columns, window, channels)
  return tiles.max(axis=(2, 4))


class Conv(nn.Module):
  """Two-dimensional convolution with the parameters of `flax.linen.Conv`.

  Attributes:
    features: channels that come out.
    kernel_size: rows and columns of the kernel.
    strides: rows and columns between neighbouring positions.
    padding: 'SAME', 'VALID', or ((top, bottom), (left, right)).
    use_bias: whether a bias is added.
    method: 'auto', 'patches' or 'native', see `convolve`.
    kernel_init: initializer of `kernel` `[rows, columns, channels, features]`.
    bias_init: initializer of `bias` `[features]`.
  """

  features: int
  kernel_size: tuple[int, int] = (3, 3)
  strides: tuple[int, int] = (1, 1)
  padding: Padding = 'SAME'
  use_bias: bool = True
  method: str = 'auto'
  kernel_init: Callable[..., Any] = nn.initializers.lecun_normal()
  bias_init: Callable[..., Any] = nn.initializers.zeros_init()

  @nn.compact
  def __call__(self, images: jax.Array) -> jax.Array:
    """Maps `[batch, height, width, channels]` to `[..., features]`."""
    shape = (*self.kernel_size, images.shape[-1], self.features)
    kernel = self.param('kernel', self.kernel_init, shape)
    out = convolve(images, kernel, self.strides, self.padding, self.method)
    if not self.use_bias:
      return out
    bias = self.param('bias', self.bias_init, (self.features,))
    return out + bias.reshape(1, 1, 1, -1)
