"""Gossip with messages that take some applications to arrive."""

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from tests import helpers
from tests import lossy

LAYOUTS = {
  name: helpers.LAYOUTS[name] for name in ('simulation', 'mesh', 'packed_4x2')
}
TOPOLOGIES = {
  'ring': decopt.ring(8),
  'two': decopt.ring(2),
  'irregular': helpers.irregular(8),
  'biased': helpers.biased(8),
}


def _history(operator, x, applications, execute=decopt.spmd):
  """[1 + applications, workers, ...]: x, and what becomes of it."""

  def run(x):
    def body(carry, _):
      carry = operator.update(*carry)
      return carry, carry[0]

    return jax.lax.scan(body, (x, operator.init(x)), length=applications)[1]

  return np.stack([x, *np.asarray(execute(run)(x)).swapaxes(0, 1)])


def _companion(now, then, delay):
  """The matrix from (x(t), ..., x(t-k)) to (x(t+1), ..., x(t-k+1)).

  Of x(t+1) = now x(t) + then x(t-k).
  """
  workers = len(now)
  matrix = np.eye(workers * (delay + 1), k=-workers)
  matrix[:workers, :workers] += now
  matrix[:workers, -workers:] += then
  return matrix


def _radius(matrix):
  return np.abs(np.linalg.eigvals(matrix)).max()


class StabilityTest(parameterized.TestCase):
  @parameterized.named_parameters(
    helpers.cases(TOPOLOGIES, {'1': 1, '2': 2, '3': 3})
  )
  def test_the_recursion_has_spectral_radius_one(self, topology, delay):
    [weights] = topology.weights
    own = np.diag(np.diag(weights))
    companion = _companion(own, weights - own, delay)
    np.testing.assert_allclose(_radius(companion), 1, rtol=1e-6)

    # And the operator is that recursion, once everything has arrived.
    x = np.random.default_rng(0).normal(size=(topology.workers, 3))
    with jax.enable_x64(True):
      history = _history(decopt.gossip(topology, delay=delay), x, 40)
    np.testing.assert_array_equal(history[delay], x)  # nothing has
    past = np.concatenate([x] * (delay + 1))
    for now in history[delay:]:
      np.testing.assert_allclose(
        past[: topology.workers], now, rtol=1e-10, atol=1e-12
      )
      past = companion @ past

  def test_to_delay_the_own_value_too_would_grow(self):
    # Why the own value is fresh: x(t+1) = x(t) + (W - I) x(t-k).
    [weights] = decopt.ring(8).weights
    identity = np.eye(8)
    radii = [
      _radius(_companion(identity, weights - identity, delay))
      for delay in (1, 2)
    ]
    np.testing.assert_allclose(radii, [1.1547, 1.2531], atol=1e-4)

  @parameterized.named_parameters(
    helpers.cases(TOPOLOGIES, {'1': 1, '2': 2, '7': 7})
  )
  def test_workers_agree_in_the_end(self, topology, delay):
    x = np.random.default_rng(0).normal(size=(topology.workers, 3))
    last = _history(decopt.gossip(topology, delay=delay), x, 3000)[-1]
    self.assertLess(np.ptp(last, axis=0).max(), 1e-4)
    self.assertTrue((last <= x.max(axis=0)).all())
    self.assertTrue((last >= x.min(axis=0)).all())

  def test_the_mean_moves_where_workers_differ(self):
    x = np.random.default_rng(0).normal(size=(8, 1000))
    for topology, moves in ((decopt.ring(8), False), (decopt.star(8), True)):
      history = _history(decopt.gossip(topology, delay=2), x, 100)
      drift = np.std(history[-1].mean(axis=0) - x.mean(axis=0))
      self.assertEqual(drift > 0.01, moves)

  @parameterized.parameters(1, 2)
  def test_agreement_stays_with_losses_on_a_changing_graph(self, delay):
    x = np.broadcast_to(np.float32([0.1, -7, 1e4]), (8, 3))
    operator = decopt.gossip(
      lossy.changing(8), delay=delay, faults=lossy.FAULTS
    )
    history = _history(operator, x, 200)
    np.testing.assert_allclose(history[-1], x, rtol=1e-5)


class ArrivalTest(parameterized.TestCase):
  @parameterized.named_parameters(
    helpers.cases(LAYOUTS, {'1': 1, '2': 2, '3': 3})
  )
  def test_a_message_takes_so_many_applications(self, execute, delay):
    # Worker 0 alone holds something; its neighbours hear of it in time.
    x = np.eye(8, dtype=np.float32)[0]
    operator = decopt.gossip(decopt.ring(8), delay=delay)
    history = _history(operator, x, delay + 1, execute)
    np.testing.assert_array_equal(history[delay], x)
    heard = np.zeros(8)
    heard[[1, 7]] = 1 / 3
    heard[0] = 1 / 3
    np.testing.assert_allclose(history[delay + 1], heard, rtol=1e-6)

  @parameterized.named_parameters(helpers.cases(LAYOUTS))
  def test_narrow_numbers_that_agree_stay_as_they_are(self, execute):
    x = jnp.broadcast_to(jnp.asarray([0.1, 3.0], jnp.bfloat16), (8, 2))
    operator = decopt.gossip(helpers.irregular(8), delay=1)

    def run(x):
      state = operator.init(x)
      for _ in range(5):
        x, state = operator.update(x, state)
      return x

    result = execute(run)(x)
    self.assertEqual(result.dtype, jnp.bfloat16)
    np.testing.assert_allclose(
      result.astype(np.float32), x.astype(np.float32), rtol=2**-7
    )

  def test_the_state_is_a_queue_of_sums(self):
    tree = {'a': jnp.zeros((2, 3)), 'b': jnp.zeros((), jnp.bfloat16)}
    state = decopt.gossip(decopt.ring(8), delay=4).init(tree)
    shapes = jax.tree.map(lambda x: (x.shape, x.dtype.name), state.in_flight)
    self.assertEqual(
      shapes.sums, {'a': ((4, 2, 3), 'float32'), 'b': ((4,), 'bfloat16')}
    )
    self.assertEqual(shapes.shares, ((4,), 'float32'))
    self.assertIsInstance(state.step, decopt.Clock)

  def test_no_delay_needs_no_state(self):
    operator = decopt.gossip(decopt.ring(8), delay=0)
    self.assertEmpty(jax.tree.leaves(operator.init(jnp.zeros(3))))

  def test_it_sends_what_gossip_sends(self):
    params = {'a': jnp.zeros(100), 'b': jnp.zeros(7)}
    plain, late = (
      decopt.traffic(decopt.gossip(decopt.ring(8), delay=k), params, 8)
      for k in (0, 3)
    )
    self.assertEqual(plain.bytes_per_step, late.bytes_per_step)
    self.assertEqual(plain.messages_per_step, late.messages_per_step)

  @parameterized.named_parameters(
    ('negative', -1, ValueError, 'delay=-1; it must be 0 or more'),
    ('fraction', 1.0, TypeError, r'delay=1\.0 of type float.*an int'),
    ('bool', True, TypeError, 'delay=True of type bool'),
  )
  def test_delays_that_are_none_are_refused(self, delay, error, message):
    with self.assertRaisesRegex(error, f'gossip got {message}'):
      decopt.gossip(decopt.ring(8), delay=delay)


if __name__ == '__main__':
  absltest.main()
