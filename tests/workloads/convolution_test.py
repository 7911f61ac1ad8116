"""Both ways to convolve agree with each other and with flax."""

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized
from flax import linen as nn

from experiments.workloads import convolution

CASES = (
  ('three_by_three', (3, 3), (1, 1), 'SAME'),
  ('one_by_one', (1, 1), (1, 1), 'SAME'),
  ('even', (2, 4), (1, 1), 'SAME'),
  ('five_by_three', (5, 3), (1, 1), 'VALID'),
  ('strided', (3, 3), (2, 3), 'SAME'),
  ('strided_valid', (3, 2), (3, 2), 'VALID'),
  ('explicit_padding', (3, 3), (2, 1), ((0, 2), (1, 0))),
)


def close(actual, expected):
  """Equal within float rounding, relative to the largest entry."""
  scale = np.abs(expected).max()
  np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=2e-6 * scale)


def draw(*shape, seed=0):
  return jax.random.normal(jax.random.key(seed), shape)


class ConvolveTest(parameterized.TestCase):
  @parameterized.named_parameters(*CASES)
  def test_patches_equal_the_native_convolution(self, size, strides, padding):
    images = draw(4, 9, 10, 5)
    kernel = draw(*size, 5, 6, seed=1)

    def run(method):
      def convolve(images, kernel):
        return convolution.convolve(images, kernel, strides, padding, method)

      @jax.jit
      def with_gradients(images, kernel):
        out, pull_back = jax.vjp(convolve, images, kernel)
        return out, *pull_back(jnp.cos(jnp.arange(out.size)).reshape(out.shape))

      return with_gradients(images, kernel)

    jax.tree.map(close, run('patches'), run('native'))

  def test_patches_equal_the_native_convolution_for_each_workers_kernel(self):
    images = draw(3, 4, 8, 8, 2)
    kernels = draw(3, 3, 3, 2, 5, seed=1)

    def run(method):
      def loss(kernel, images):
        out = convolution.convolve(images, kernel, method=method)
        return jnp.sum(out**2)

      return jax.jit(jax.vmap(jax.value_and_grad(loss)))(kernels, images)

    jax.tree.map(close, run('patches'), run('native'))

  def test_auto_takes_patches_on_a_cpu(self):
    images, kernel = draw(1, 4, 4, 1), draw(3, 3, 1, 2)
    program = jax.make_jaxpr(convolution.convolve)(images, kernel)
    native = 'conv_general_dilated' in str(program)
    self.assertEqual(native, jax.default_backend() != 'cpu')

  def test_keeps_bfloat16(self):
    images, kernel = draw(1, 4, 4, 1), draw(3, 3, 1, 2)
    images, kernel = images.astype(jnp.bfloat16), kernel.astype(jnp.bfloat16)
    for method in ('patches', 'native'):
      out = convolution.convolve(images, kernel, method=method)
      self.assertEqual(out.dtype, jnp.bfloat16)

  def test_an_unknown_method_is_refused(self):
    with self.assertRaisesRegex(ValueError, "did you mean 'patches'"):
      convolution.convolve(draw(1, 4, 4, 1), draw(3, 3, 1, 2), method='patch')

  @parameterized.named_parameters(
    ('channels', (1, 4, 4, 2)), ('no_batch', (4, 4, 1))
  )
  def test_images_that_do_not_fit_the_kernel_are_refused(self, shape):
    with self.assertRaisesRegex(ValueError, r'needs images .*, 1\] but got'):
      convolution.convolve(draw(*shape), draw(3, 3, 1, 2))


class ConvTest(parameterized.TestCase):
  @parameterized.named_parameters(*CASES)
  def test_takes_the_parameters_of_flax(self, size, strides, padding):
    images = draw(2, 9, 10, 5)
    params = {'kernel': draw(*size, 5, 6, seed=1), 'bias': jnp.arange(6.0)}

    def apply(module):
      return jax.jit(module.apply)({'params': params}, images)

    expected = apply(nn.Conv(6, size, strides, padding=padding))
    for method in ('patches', 'native'):
      ours = convolution.Conv(6, size, strides, padding, method=method)
      close(apply(ours), expected)

  def test_starts_as_flax_does(self):
    ours, theirs = (
      jax.jit(module.init)(jax.random.key(0), draw(1, 4, 4, 2))
      for module in (convolution.Conv(3), nn.Conv(3, (3, 3)))
    )
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)

  def test_bias_can_be_left_out(self):
    images = draw(1, 4, 4, 1)
    module = convolution.Conv(2, use_bias=False)
    variables = jax.eval_shape(module.init, jax.random.key(0), images)
    self.assertEqual(list(variables['params']), ['kernel'])


class MaxPoolTest(parameterized.TestCase):
  @parameterized.named_parameters(('odd', (7, 10), 2), ('three', (8, 9), 3))
  def test_equals_flax_with_its_gradient(self, size, window):
    images = draw(2, *size, 3)
    square = (window, window)

    def ours(x):
      return convolution.max_pool(x, window)

    def theirs(x):
      return nn.max_pool(x, square, strides=square)

    def with_gradient(pool):
      value_and_grad = jax.value_and_grad(lambda x: jnp.sum(jnp.sin(pool(x))))
      return pool(images), jax.jit(value_and_grad)(images)[1]

    jax.tree.map(
      np.testing.assert_array_equal, with_gradient(ours), with_gradient(theirs)
    )


if __name__ == '__main__':
  absltest.main()
