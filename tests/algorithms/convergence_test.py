"""Where the algorithms end, and how fast they get there."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from tests import helpers


def _distances(transform, problem, steps):
  """[steps] distance of the worst worker from the optimum after each step."""
  step = decopt.spmd(helpers.worker_step(transform))

  def body(carry, _):
    carry = step(*carry, problem.batch(0))
    return carry, carry[0]

  @jax.jit
  def train(params):
    state = decopt.spmd(transform.init)(params)
    return jax.lax.scan(body, (params, state), length=steps)[1]

  with jax.enable_x64(True):
    params = jax.tree.map(np.asarray, train(problem.params()))
  x = np.concatenate([params['kernel'], params['bias'][..., None]], axis=-1)
  return np.linalg.norm(x - problem.optimum(), axis=-1).max(axis=-1)


class ConvergenceTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('dsgd', decopt.dsgd), ('diffusion', decopt.diffusion)
  )
  def test_stalls_at_a_floor_in_proportion_to_the_step_size(self, build):
    problem = helpers.LeastSquares(batches=1)
    ring = decopt.ring(8)
    floors = []
    for rate in (0.02, 0.01):
      distances = _distances(build(optax.sgd(rate), ring), problem, 10_000)
      np.testing.assert_allclose(distances[-1], distances[-1000], rtol=1e-5)
      floors.append(distances[-1])
    self.assertGreater(floors[1], 1e-3)
    self.assertBetween(floors[0] / floors[1], 1.8, 2.2)

  def test_all_reduce_converges_linearly_to_the_optimum(self):
    problem, rate = helpers.LeastSquares(batches=1), 0.1
    start = np.broadcast_to(problem.start[0], problem.start.shape)
    problem.start = start
    distances = _distances(
      decopt.all_reduce_sgd(optax.sgd(rate)), problem, 1500
    )
    self.assertLess(distances[-1], 1e-12)
    # The error in the flattest direction, which is left at the end, shrinks by
    # 1 - rate times the smallest eigenvalue of the mean Hessian.
    factor = 1 - rate * np.linalg.eigvalsh(problem.hessian()).min()
    np.testing.assert_allclose(distances[150] / distances[149], factor, 1e-3)

  @parameterized.named_parameters(
    ('dsgd_below', decopt.dsgd, 0.6, True),
    ('dsgd_above', decopt.dsgd, 0.7, False),
    ('diffusion_above', decopt.diffusion, 0.7, True),
    ('diffusion_far_above', decopt.diffusion, 1.9, True),
    ('diffusion_beyond', decopt.diffusion, 2.1, False),
  )
  def test_diffusion_allows_larger_steps_than_dsgd(self, build, rate, stable):
    # With losses (x - c_i)^2 / 2 the error of dsgd is multiplied by W - rate I,
    # that of diffusion by (1 - rate) W. The eigenvalues of a ring of 8 with
    # weights 1/3 lie between -1/3 and 1, so that the first is stable below
    # 2/3 and the second below 2.
    transform = build(optax.sgd(rate), decopt.ring(8))
    centres = jnp.arange(8.0)

    def train(centre):
      def step(carry, _):
        x, state = carry
        updates, state = transform.update(x - centre, state, x)
        return (x + updates, state), None

      start = (centre, transform.init(centre))
      return jax.lax.scan(step, start, length=300)[0][0]

    size = np.abs(decopt.spmd(train)(centres)).max()
    self.assertEqual(size < 10, stable)


if __name__ == '__main__':
  absltest.main()
