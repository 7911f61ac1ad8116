"""What must be the same whatever the numbers are."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from tests import helpers

STEPS = 12


def _plain(optimizer, problem, start):
  """Trains one worker without any of the library; [1, d] -> [1, d]."""
  step = jax.jit(helpers.worker_step(optimizer))
  params = decopt.worker(problem.params(start), 0)
  state = optimizer.init(params)
  for t in range(STEPS):
    batch = [x[0] for x in problem.batch(t)]
    params, state = step(params, state, batch)
  return problem.flat(decopt.replicate(params, 1))


def _results(transforms, problem, start, execute=decopt.spmd):
  return helpers.run(execute, transforms, problem, steps=STEPS, start=start)


class IdentitiesOfAllAlgorithmsTest(parameterized.TestCase):
  @parameterized.named_parameters(
    helpers.cases(
      helpers.ALGORITHMS,
      {
        'simulation': helpers.LAYOUTS['simulation'],
        'unrolled': helpers.LAYOUTS['unrolled'],
        'mesh': helpers.on_mesh(1),
      },
    )
  )
  def test_one_worker_is_plain_optax(self, algorithm, execute):
    problem = helpers.LeastSquares(workers=1)
    optimizers = {
      name: helpers.OPTIMIZERS[name].optax for name in algorithm.optimizers
    }
    transforms = {
      name: algorithm.build(optimizer, 1)
      for name, optimizer in optimizers.items()
    }
    results = _results(transforms, problem, problem.start, execute)
    for name, x in results.items():
      expected = _plain(optimizers[name], problem, problem.start)
      np.testing.assert_allclose(x, expected, rtol=2e-6, err_msg=name)

  @parameterized.named_parameters(helpers.cases(helpers.ALGORITHMS))
  def test_workers_with_the_same_data_behave_as_one_if_promised(
    self, algorithm
  ):
    one = helpers.LeastSquares(workers=1)
    same = helpers.LeastSquares(workers=1)
    for name in ('features', 'targets', 'start'):
      setattr(same, name, np.repeat(getattr(one, name), helpers.WORKERS, 0))
    optimizer = helpers.OPTIMIZERS['adam'].optax
    transforms = {'it': algorithm.build(optimizer, helpers.WORKERS)}
    with jax.enable_x64(True):
      x = _results(transforms, same, same.start)['it']
      expected = _plain(optimizer, one, one.start)
    equal = np.allclose(x, np.repeat(expected, helpers.WORKERS, 0), rtol=1e-12)
    self.assertEqual(equal, algorithm.keeps_equal)

  @parameterized.named_parameters(helpers.cases(helpers.ALGORITHMS))
  def test_without_gradients_the_mean_stays_as_promised(self, algorithm):
    problem = helpers.LeastSquares()
    transforms = {'it': algorithm.build(optax.sgd(0.0), helpers.WORKERS)}
    start = algorithm.start(problem)
    with jax.enable_x64(True):
      x = _results(transforms, problem, start)['it']
    stays = np.allclose(x.mean(axis=0), start.mean(axis=0), rtol=1e-12)
    self.assertEqual(stays, algorithm.keeps_mean)

  @parameterized.named_parameters(helpers.cases(helpers.ALGORITHMS))
  def test_dtypes_of_parameters_are_kept(self, algorithm):
    params = {'a': jnp.ones(3, jnp.bfloat16), 'b': jnp.ones((), jnp.float32)}
    transform = algorithm.build(optax.sgd(0.1), helpers.WORKERS)
    stacked = decopt.replicate(params, helpers.WORKERS)

    def step(params):
      grads = jax.tree.map(jnp.ones_like, params)
      updates, _ = transform.update(grads, transform.init(params), params)
      return updates, optax.apply_updates(params, updates)

    for result in decopt.spmd(step)(stacked):
      self.assertEqual(
        jax.tree.map(lambda x: (x.shape, x.dtype), result),
        jax.tree.map(lambda x: (x.shape, x.dtype), stacked),
      )


class IdentitiesTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.problem = helpers.LeastSquares()
    self.complete = decopt.complete(helpers.WORKERS)
    self.ring = decopt.ring(helpers.WORKERS)

  def assert_same(self, transforms, start=None):
    with jax.enable_x64(True):
      first, *others = _results(transforms, self.problem, start).values()
    for other in others:
      np.testing.assert_allclose(other, first, rtol=1e-12, atol=1e-14)

  def test_diffusion_on_the_complete_graph_is_all_reduce(self):
    start = np.broadcast_to(self.problem.start[0], self.problem.start.shape)
    sgd = optax.sgd(0.1)
    self.assert_same(
      {
        'all_reduce_sgd': decopt.all_reduce_sgd(sgd),
        'diffusion': decopt.diffusion(sgd, self.complete),
        'local_sgd': decopt.local_sgd(sgd, 1),
      },
      start,
    )

  @parameterized.named_parameters(helpers.cases(helpers.OPTIMIZERS))
  def test_the_complete_graph_is_all_reduce(self, optimizer):
    self.assert_same(
      {
        'all': decopt.local_sgd(optimizer.optax, 3),
        'graph': decopt.decentralized_local_sgd(
          optimizer.optax, self.complete, 3
        ),
      }
    )

  @parameterized.named_parameters(helpers.cases(helpers.OPTIMIZERS))
  def test_period_one_is_every_step(self, optimizer):
    optimizer = optimizer.optax
    self.assert_same(
      {
        'diffusion': decopt.diffusion(optimizer, self.ring),
        'period one': decopt.decentralized_local_sgd(optimizer, self.ring, 1),
        'by a function': decopt.decentralized_local_sgd(
          optimizer, self.ring, lambda step: 1
        ),
      }
    )

  def test_dsgd_is_diffusion_observed_before_the_combination(self):
    # From consensus, one step of either: W x = x, so x + A(g) against
    # W(x + A(g)).
    start = np.broadcast_to(self.problem.start[0], self.problem.start.shape)
    sgd = optax.sgd(0.1)
    with jax.enable_x64(True):
      results = helpers.run(
        decopt.spmd,
        {
          'dsgd': decopt.dsgd(sgd, self.ring),
          'diffusion': decopt.diffusion(sgd, self.ring),
        },
        self.problem,
        steps=1,
        start=start,
      )
    np.testing.assert_allclose(
      self.ring.weights[0] @ results['dsgd'], results['diffusion'], rtol=1e-12
    )

  def test_all_reduce_is_training_with_the_union_of_batches(self):
    start = np.broadcast_to(self.problem.start[0], self.problem.start.shape)
    union = helpers.LeastSquares(workers=1)
    for name in ('features', 'targets'):
      stacked = getattr(self.problem, name).swapaxes(0, 1)
      batches, workers, rows = stacked.shape[:3]
      shape = (1, batches, workers * rows, *stacked.shape[3:])
      setattr(union, name, stacked.reshape(shape))
    optimizer = helpers.OPTIMIZERS['adam'].optax
    with jax.enable_x64(True):
      x = _results(
        {'it': decopt.all_reduce_sgd(optimizer)}, self.problem, start
      )['it']
      expected = _plain(optimizer, union, start[:1])
    np.testing.assert_allclose(
      x, np.repeat(expected, helpers.WORKERS, 0), rtol=1e-12
    )

  @parameterized.named_parameters(
    ('all_reduce_sgd', lambda o, _: decopt.all_reduce_sgd(o)),
    ('dsgd', decopt.dsgd),
    ('diffusion', decopt.diffusion),
    ('local_sgd', lambda o, _: decopt.local_sgd(o, 2)),
  )
  def test_workers_have_no_names_on_the_complete_graph(self, build):
    transforms = {'it': build(optax.adam(0.1), self.complete)}
    order = np.random.default_rng(0).permutation(helpers.WORKERS)
    renamed = helpers.LeastSquares()
    for name in ('features', 'targets', 'start'):
      setattr(renamed, name, getattr(self.problem, name)[order])
    with jax.enable_x64(True):
      x = _results(transforms, self.problem, self.problem.start)['it']
      y = _results(transforms, renamed, renamed.start)['it']
    np.testing.assert_allclose(y, x[order], rtol=1e-12)


class RequirementsTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('dsgd', lambda t: decopt.dsgd(optax.sgd(0.1), t)),
    ('diffusion', lambda t: decopt.diffusion(optax.sgd(0.1), t)),
    (
      'decentralized_local_sgd',
      lambda t: decopt.decentralized_local_sgd(optax.sgd(0.1), t, 2),
    ),
  )
  def test_weights_that_move_the_mean_are_refused(self, build):
    with self.assertRaisesRegex(
      ValueError, "rows and columns.*'all hear one'.*Use metropolis"
    ):
      build(helpers.biased(4))
    pairs = np.kron(np.eye(2), np.full((2, 2), 0.5))
    with self.assertRaisesRegex(ValueError, "connected.*'pairs'.*ring"):
      build(decopt.Topology(pairs, 'pairs'))


if __name__ == '__main__':
  absltest.main()
