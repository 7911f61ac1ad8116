"""A worker that is away learns nothing and forgets nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from tests import helpers
from tests import lossy
from tests import oracle

FAULTS = decopt.inactive_workers(0.3, 0.4)
STEPS = 25


def _active(steps=STEPS):
  """bool [steps, workers]: a worker that takes part hears itself."""
  return np.diagonal(
    lossy.arrivals(FAULTS, 8, directed=True, steps=steps), axis1=1, axis2=2
  )


class WhileActiveTest(parameterized.TestCase):
  @parameterized.named_parameters(helpers.cases(helpers.LAYOUTS))
  def test_freezes_updates_and_state(self, execute):
    transform = decopt.while_active(optax.adam(0.1), FAULTS)
    step = execute(lambda g, s, p: transform.update(g, s, p))
    params = jnp.zeros((8, 3))
    state = execute(transform.init)(params)
    rng, active = np.random.default_rng(0), _active()
    self.assertBetween(active.mean(), 0.3, 0.9)
    for t in range(10):
      grads = jnp.asarray(rng.normal(size=(8, 3)), jnp.float32)
      before = state.inner
      updates, state = jax.block_until_ready(step(grads, state, params))
      moved = np.asarray(updates).any(axis=1)
      np.testing.assert_array_equal(moved, active[t])
      for old, new in zip(
        jax.tree.leaves(before), jax.tree.leaves(state.inner), strict=True
      ):
        change = np.asarray(old != new).reshape(8, -1).any(axis=1)
        np.testing.assert_array_equal(change, active[t])
    self.assertEqual(state.step.count, 10)

  @parameterized.named_parameters(
    helpers.cases(
      {'momentum': 'momentum', 'adam': 'adam'},
      {
        name: helpers.LAYOUTS[name]
        for name in ('simulation', 'unrolled', 'mesh', 'packed_4x2')
      },
    )
  )
  def test_is_away_when_its_messages_are(self, name, execute):
    optimizer, topology = helpers.OPTIMIZERS[name], decopt.ring(8)
    transform = decopt.diffusion(
      decopt.while_active(optimizer.optax, FAULTS), topology, faults=FAULTS
    )
    problem = helpers.LeastSquares()
    with jax.enable_x64(True):
      x = helpers.run(execute, {'it': transform}, problem, steps=STEPS)['it']

    weights = lossy.weights(
      topology, FAULTS, oracle.kept_by_senders, directed=False
    )
    expected, workers = problem.start, [optimizer.oracle() for _ in range(8)]
    for t, active in enumerate(_active()):
      gradient = problem.gradient(expected, t)
      for i in np.flatnonzero(active):
        move = np.zeros_like(expected)
        move[i] = workers[i](gradient[i])
        expected = expected + move
      expected = oracle.mix(expected, weights, t)
    np.testing.assert_allclose(x, expected, rtol=1e-10)

  def test_without_absences_it_is_the_optimizer(self):
    problem, adam = helpers.LeastSquares(), optax.adam(0.1)
    results = helpers.run(
      decopt.spmd,
      {
        'it': decopt.while_active(adam, decopt.link_drops(0.5)),
        'plain': adam,
      },
      problem,
      steps=10,
    )
    np.testing.assert_allclose(results['it'], results['plain'], rtol=1e-6)

  def test_dtypes_and_extra_arguments_pass(self):
    transform = decopt.while_active(
      optax.chain(optax.sgd(0.1), optax.add_noise(0.1, 0.5, jax.random.key(0))),
      FAULTS,
    )
    params = {'a': jnp.ones((8, 3), jnp.bfloat16), 'b': jnp.ones(8)}

    def step(params):
      state = transform.init(params)
      return transform.update(params, state, params, loss=1.0)

    updates, state = decopt.spmd(step)(params)
    self.assertEqual(
      jax.tree.map(lambda x: (x.shape, x.dtype), updates),
      jax.tree.map(lambda x: (x.shape, x.dtype), params),
    )
    self.assertEqual(
      jax.tree.structure(state),
      jax.tree.structure(decopt.spmd(transform.init)(params)),
    )

  def test_what_all_workers_share_cannot_be_frozen(self):
    around = decopt.while_active(decopt.local_sgd(optax.sgd(0.1), 2), FAULTS)
    with self.assertRaisesRegex(
      ValueError, r'while_active.*Clock.*dsgd\(while_active'
    ):
      decopt.spmd(around.init)(jnp.zeros(8))

  def test_it_asks_for_workers_and_for_faults(self):
    transform = decopt.while_active(optax.sgd(0.1), FAULTS)
    with self.assertRaisesRegex(NameError, r"no axis named 'workers'"):
      transform.init(jnp.zeros(3))
    with self.assertRaisesRegex(TypeError, 'while_active got 0.1 as a fault'):
      decopt.while_active(optax.sgd(0.1), 0.1)


if __name__ == '__main__':
  absltest.main()
