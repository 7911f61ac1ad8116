"""The distance of workers from their mean, against numpy."""

import jax.numpy as jnp
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from tests import helpers


class ConsensusDistanceTest(parameterized.TestCase):
  @parameterized.named_parameters(helpers.cases(helpers.EXECUTORS))
  def test_is_the_root_mean_square_distance_from_the_mean(self, execute):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(8, 3, 2)), rng.normal(size=(8,))
    x = np.concatenate([a.reshape(8, -1), b[:, None]], axis=1)
    distances = np.linalg.norm(x - x.mean(axis=0), axis=1)
    expected = np.sqrt(np.mean(distances**2))
    params = {
      'a': jnp.asarray(a, jnp.float32),
      'b': jnp.asarray(b, jnp.float32),
    }
    result = execute(decopt.consensus_distance)(params)
    np.testing.assert_allclose(result, np.full(8, expected), rtol=1e-5)
    self.assertEqual(result.dtype, jnp.float32)

  def test_workers_that_agree_are_at_distance_zero(self):
    params = decopt.replicate({'a': jnp.arange(3.0), 'b': jnp.ones(())}, 8)
    np.testing.assert_array_equal(
      decopt.spmd(decopt.consensus_distance)(params), np.zeros(8)
    )

  def test_narrow_parameters_are_measured_in_wide_numbers(self):
    # In bfloat16 the mean of 1 and 1.0078125 is one of them.
    x = jnp.asarray([[1.0], [1.0078125]], jnp.bfloat16)
    distance = decopt.spmd(decopt.consensus_distance)(x)
    self.assertEqual(distance.dtype, jnp.float32)
    np.testing.assert_allclose(distance, [0.00390625] * 2, rtol=1e-6)

  def test_complex_parameters_have_a_real_distance(self):
    distance = decopt.spmd(decopt.consensus_distance)(jnp.asarray([0, 2j]))
    self.assertEqual(distance.dtype, jnp.float32)
    np.testing.assert_allclose(distance, [1, 1], rtol=1e-6)

  def test_no_parameters_agree(self):
    distance = decopt.spmd(decopt.consensus_distance, workers=4)({})
    np.testing.assert_array_equal(distance, np.zeros(4))


if __name__ == '__main__':
  absltest.main()
