"""Every algorithm against its recursion in numpy, in every layout."""

import functools

import jax
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from tests import helpers

OTHERS = {
  name: execute
  for name, execute in helpers.EXECUTORS.items()
  if name != 'simulation'
}


@functools.cache
def _in_single_precision(execute):
  """Trains with all algorithms, in one program."""
  optimizer = helpers.OPTIMIZERS['momentum'].optax
  transforms = {
    name: algorithm.build(optimizer, helpers.WORKERS)
    for name, algorithm in helpers.ALGORITHMS.items()
  }
  return helpers.run(execute, transforms, helpers.LeastSquares(seed=1))


class RecursionTest(parameterized.TestCase):
  @parameterized.named_parameters(
    helpers.cases(helpers.ALGORITHMS, helpers.EXECUTORS)
  )
  def test_follows_the_recursion_of_the_paper(self, algorithm, execute):
    problem = helpers.LeastSquares()
    start = algorithm.start(problem)
    transforms = {
      name: algorithm.build(helpers.OPTIMIZERS[name].optax, helpers.WORKERS)
      for name in algorithm.optimizers
    }
    with jax.enable_x64(True):
      results = helpers.run(execute, transforms, problem, start=start)
    for name, x in results.items():
      adapt = helpers.OPTIMIZERS[name].oracle()
      expected = algorithm.oracle(
        start, problem.gradient, adapt, steps=helpers.STEPS
      )
      self.assertEqual(x.dtype, np.float64)
      np.testing.assert_allclose(
        x, expected, rtol=1e-10, atol=1e-12, err_msg=name
      )

  @parameterized.named_parameters(helpers.cases(OTHERS))
  def test_layouts_agree_in_single_precision(self, execute):
    expected = _in_single_precision(decopt.spmd)
    for name, x in _in_single_precision(execute).items():
      self.assertEqual(x.dtype, np.float32)
      np.testing.assert_allclose(
        x, expected[name], rtol=2e-5, atol=2e-6, err_msg=name
      )

  @parameterized.named_parameters(helpers.cases(helpers.ALGORITHMS))
  def test_never_lets_data_decide_who_communicates(self, algorithm):
    params = decopt.worker(helpers.LeastSquares().params(), 0)
    for optimizer in helpers.OPTIMIZERS.values():
      transform = algorithm.build(optimizer.optax, helpers.WORKERS)
      self.assertEmpty(
        decopt.data_dependent_collectives(transform, params, helpers.WORKERS)
      )


if __name__ == '__main__':
  absltest.main()
