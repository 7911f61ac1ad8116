"""What is sent, read off the program, against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from tests import helpers

PARAMS = jnp.zeros(10_000)  # 40,000 bytes
SGD = optax.sgd(0.1)


class ClosedFormsTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('ring', decopt.dsgd(SGD, decopt.ring(8)), 80_000, 2),
    (
      'one_peer',
      decopt.diffusion(optax.adam(0.1), decopt.one_peer_exponential(8)),
      40_000,
      1,
    ),
    ('exponential', decopt.dsgd(SGD, decopt.exponential(8)), 120_000, 3),
    ('torus', decopt.dsgd(SGD, decopt.torus(2, 4)), 120_000, 3),
    ('complete', decopt.dsgd(SGD, decopt.complete(8)), 280_000, 7),
    ('all_reduce', decopt.all_reduce_sgd(SGD), 40_000, 1),
    ('local_sgd', decopt.local_sgd(SGD, 5), 8_000, 1 / 5),
    (
      'decentralized_local_sgd',
      decopt.decentralized_local_sgd(SGD, decopt.ring(8), 7),
      80_000 / 7,
      2 / 7,
    ),
    (
      'one_peer_now_and_then',
      decopt.decentralized_local_sgd(SGD, decopt.one_peer_exponential(8), 2),
      20_000,
      1 / 2,
    ),
    (
      'repeated',
      optax.chain(
        SGD,
        decopt.mix_iterates(decopt.repeated(decopt.gossip(decopt.ring(8)), 3)),
      ),
      240_000,
      6,
    ),
    ('local', SGD, 0, 0),
  )
  def test_bytes_and_messages_of_a_step(self, transform, size, messages):
    sent = decopt.traffic(transform, PARAMS, 8)
    self.assertAlmostEqual(sent.bytes_per_step, size)
    self.assertAlmostEqual(sent.messages_per_step, messages)

  @parameterized.named_parameters(helpers.cases(helpers.ALGORITHMS))
  def test_shapes_are_enough(self, algorithm):
    transform = algorithm.build(optax.adam(0.1), 8)
    params = {'a': jnp.zeros((3, 5)), 'b': jnp.zeros(4)}
    shapes = jax.eval_shape(lambda: params)
    first = decopt.traffic(transform, params, 8)
    second = decopt.traffic(transform, shapes, 8)
    self.assertEqual(first.bytes_per_step, second.bytes_per_step)
    self.assertGreater(first.bytes_per_step, 0)

  def test_leaves_and_dtypes_add_up(self):
    params = {
      'a': jnp.zeros((10, 10)),
      'b': jnp.zeros(7, jnp.bfloat16),
      'c': jnp.zeros((0, 3)),
    }
    sent = decopt.traffic(decopt.dsgd(SGD, decopt.ring(4)), params, 4)
    self.assertEqual(sent.bytes_per_step, 2 * (400 + 14))

  def test_a_star_sends_as_many_messages_as_it_has_links(self):
    # The centre sends to all, the others to the centre; what only fills up a
    # permutation is not sent.
    sent = decopt.traffic(decopt.dsgd(SGD, decopt.star(5)), PARAMS, 5)
    np.testing.assert_array_equal(
      sent.bytes_by_worker, [160_000, 40_000, 40_000, 40_000, 40_000]
    )
    self.assertEqual(sent.bytes_per_step, 8 * 40_000 / 5)

  @parameterized.named_parameters(
    ('wheel', helpers.irregular), ('one_peer', decopt.one_peer_exponential)
  )
  def test_each_worker_sends_to_those_who_hear_it(self, graph):
    topology = graph(7)
    sent = decopt.traffic(decopt.dsgd(SGD, topology), PARAMS, 7)
    links = (topology.weights > 0) & ~np.eye(7, dtype=bool)
    expected = 40_000 * links.sum(axis=1).mean(axis=0)
    np.testing.assert_allclose(sent.bytes_by_worker, expected)

  def test_masked_leaves_are_free(self):
    operator = optax.masked(
      decopt.gossip(decopt.ring(4)), {'mine': False, 'ours': True}
    )
    params = {'mine': jnp.zeros(1000), 'ours': jnp.zeros(10)}
    transform = optax.chain(SGD, decopt.mix_iterates(operator))
    self.assertEqual(decopt.traffic(transform, params, 4).bytes_per_step, 80)

  def test_loops_of_a_fixed_length_are_counted(self):
    def update(tree, state, params=None):
      del params

      def body(tree, _):
        return decopt.mean(tree), None

      return jax.lax.scan(body, tree, length=4)[0], state

    transform = optax.GradientTransformation(optax.identity().init, update)
    self.assertEqual(
      decopt.traffic(transform, PARAMS, 4).bytes_per_step, 160_000
    )


def _sent(operator, size, params=PARAMS, workers=8):
  """Bytes (within, between) machines of a step, and both as `Traffic`."""
  levels = decopt.traffic(operator, params, workers).by_level(size)
  return [level.bytes_per_step for level in levels], levels


class ByLevelTest(parameterized.TestCase):
  """What stays within machines, and what goes between them."""

  @parameterized.parameters((1, 0, 2), (2, 1, 1), (4, 1.5, 0.5), (8, 2, 0))
  def test_a_ring_leaves_a_machine_at_its_two_ends(self, size, within, between):
    sent, (near, far) = _sent(decopt.gossip(decopt.ring(8)), size)
    self.assertEqual(sent, [40_000 * within, 40_000 * between])
    self.assertEqual(near.messages_per_step, within)
    self.assertEqual(far.messages_per_step, between)

  def test_messages_are_those_of_each_worker(self):
    _, (near, far) = _sent(decopt.gossip(decopt.ring(8)), 4)
    np.testing.assert_array_equal(
      near.bytes_by_worker, 40_000 * np.array([1, 2, 2, 1, 1, 2, 2, 1])
    )
    np.testing.assert_array_equal(
      far.bytes_by_worker, 40_000 * np.array([1, 0, 0, 1, 1, 0, 0, 1])
    )

  def test_what_all_do_together_goes_between_machines(self):
    self.assertEqual(_sent(decopt.all_reduce(), 4)[0], [0, 40_000])
    self.assertEqual(_sent(decopt.all_reduce(), 8)[0], [40_000, 0])

  @parameterized.named_parameters(
    ('ring', decopt.ring(8), 2, 2),
    ('complete', decopt.complete(4), 4, 3),
    ('pair', decopt.ring(2), 8, 1),
    ('one_peer', decopt.one_peer_exponential(4), 4, 1),
  )
  def test_machines_send_their_mean_once_to_each_neighbour(
    self, topology, size, neighbours
  ):
    operator = decopt.hierarchical_gossip(topology, size)
    sent, (near, far) = _sent(operator, size, workers=16)
    share = 40_000 / size
    self.assertEqual(sent, [40_000 + share, neighbours * share])
    # One bucket: a reduce-scatter and an all-gather, and a share to each.
    self.assertEqual(near.messages_per_step, 2)
    self.assertEqual(far.messages_per_step, neighbours)
    self.assertEqual(
      {e.collective for e in near.exchanges}, {'reduce_scatter', 'all_gather'}
    )
    self.assertEqual({e.collective for e in far.exchanges}, {'ppermute'})

  def test_shares_are_padded_and_buckets_counted(self):
    params = {
      'a': jnp.zeros(5),
      'b': jnp.zeros(6),
      'c': jnp.zeros(2, 'bfloat16'),
    }
    operator = decopt.hierarchical_gossip(decopt.ring(2), 4)
    sent, _ = _sent(operator, 4, params)
    # 11 numbers are 4 shares of 3, and 2 narrow ones 4 shares of 1.
    self.assertEqual(sent, [4 * 12 + 4 * 3 + 2 * 4 + 2, 4 * 3 + 2])

  @parameterized.named_parameters(helpers.cases(helpers.ALGORITHMS))
  def test_both_levels_are_all_there_is(self, algorithm):
    transform = algorithm.build(SGD, 8)
    total = decopt.traffic(transform, PARAMS, 8)
    near, far = total.by_level(2)
    np.testing.assert_allclose(near.bytes + far.bytes, total.bytes)
    np.testing.assert_allclose(near.messages + far.messages, total.messages)
    np.testing.assert_allclose(
      near.bytes_by_worker + far.bytes_by_worker, total.bytes_by_worker
    )

  @parameterized.parameters(3, 0, 16)
  def test_machines_must_divide_the_workers(self, size):
    sent = decopt.traffic(decopt.all_reduce(), PARAMS, 8)
    with self.assertRaisesRegex(
      ValueError, f'workers_per_machine={size}.*8 workers.*divisor of 8'
    ):
      sent.by_level(size)


class WhenTest(parameterized.TestCase):
  @parameterized.parameters(1, 2, 5, 37, 1000)
  def test_the_period_of_a_collective_is_found(self, period):
    sent = decopt.traffic(decopt.local_sgd(SGD, period), PARAMS, 8)
    [exchange] = sent.exchanges
    self.assertEqual(exchange.period, period)
    self.assertEqual(exchange.collective, 'psum')
    self.assertEqual(exchange.dtype, np.float32)
    self.assertAlmostEqual(sent.bytes_per_step, 40_000 / period)
    self.assertEqual(sent.steps % period, 0)

  def test_steps_are_those_of_the_horizon(self):
    sent = decopt.traffic(decopt.local_sgd(SGD, 3), PARAMS, 8, steps=7)
    np.testing.assert_array_equal(sent.bytes, [0, 0, 4e4, 0, 0, 4e4, 0])
    np.testing.assert_array_equal(sent.messages, [0, 0, 1, 0, 0, 1, 0])
    self.assertAlmostEqual(sent.bytes_per_step, 80_000 / 7)

  def test_counters_of_optax_are_followed(self):
    conditional = optax.chain(
      SGD,
      decopt.mix_iterates(
        optax.conditionally_transform(
          decopt.all_reduce(), lambda step: step % 4 == 3
        )
      ),
    )
    sent = decopt.traffic(conditional, PARAMS, 8, steps=8)
    np.testing.assert_array_equal(np.flatnonzero(sent.bytes), [3, 7])

  def test_accumulation_around_communication_sends_at_every_step(self):
    inside = optax.chain(
      optax.MultiSteps(SGD, 4).gradient_transformation(),
      decopt.mix_iterates(decopt.every(decopt.all_reduce(), 4)),
    )
    around = optax.MultiSteps(
      decopt.local_sgd(SGD, 1), 4
    ).gradient_transformation()
    self.assertEqual(decopt.traffic(inside, PARAMS, 8).bytes_per_step, 10_000)
    self.assertEqual(decopt.traffic(around, PARAMS, 8).bytes_per_step, 40_000)

  def test_it_prints_what_one_wants_to_know(self):
    sent = decopt.traffic(decopt.local_sgd(SGD, 5), PARAMS, 8)
    self.assertEqual(
      str(sent),
      '8,000 bytes in 0.2 messages a step from each worker\n'
      '  psum: 40,000 bytes of float32, every 5 steps',
    )
    self.assertIn(
      'every step', str(decopt.traffic(decopt.all_reduce_sgd(SGD), PARAMS, 8))
    )

  def test_unequal_rounds_are_not_taken_for_a_period(self):
    growing = decopt.local_sgd(optax.sgd(0.1), lambda step: 2 + step // 8)
    params = jnp.zeros(10)
    sent = decopt.traffic(growing, params, 4)
    meetings = np.flatnonzero(sent.bytes)
    self.assertGreater(np.ptp(np.diff(meetings)), 0)
    again = decopt.traffic(growing, params, 4, steps=sent.steps)
    self.assertEqual(sent.bytes_per_step, again.bytes_per_step)

  def test_a_collective_that_runs_once_has_no_period(self):
    once = decopt.every(
      decopt.all_reduce(), lambda step: jnp.where(step == 0, 3, 10**6)
    )
    sent = decopt.traffic(once, PARAMS, 8, steps=20)
    self.assertIsNone(sent.exchanges[0].period)
    self.assertIn('psum: 40,000 bytes of float32, once in 20 steps', str(sent))


class DataDependentTest(parameterized.TestCase):
  """A guard may go around the local part only."""

  def setUp(self):
    super().setUp()
    mix = decopt.mix_iterates(decopt.gossip(decopt.ring(4)))
    self.bad = optax.apply_if_finite(optax.chain(SGD, mix), 3)
    self.good = optax.chain(optax.apply_if_finite(SGD, 3), mix)
    self.params = {'a': jnp.zeros(3), 'b': jnp.zeros(2)}

  def test_a_guard_around_communication_is_found(self):
    found = decopt.data_dependent_collectives(self.bad, self.params, 4)
    self.assertNotEmpty(found)
    self.assertRegex(found[0], 'ppermute inside a conditional')

  def test_a_guard_around_the_local_part_is_fine(self):
    self.assertEmpty(
      decopt.data_dependent_collectives(self.good, self.params, 4)
    )

  def test_traffic_refuses_what_data_decide(self):
    with self.assertRaisesRegex(ValueError, 'data decide.*ppermute inside'):
      decopt.traffic(self.bad, self.params, 4)

  def test_a_loop_until_data_agree_is_found(self):
    def update(tree, state, params=None):
      del params
      tree = jax.lax.while_loop(
        lambda x: jnp.sum(x) > 1, lambda x: decopt.mean(x) / 2, tree
      )
      return tree, state

    transform = optax.GradientTransformation(optax.identity().init, update)
    found = decopt.data_dependent_collectives(transform, jnp.zeros(3), 4)
    self.assertRegex(found[0], 'psum inside a while loop')

  def test_a_simulation_runs_what_would_hang_on_devices(self):
    # With one worker's gradient NaN it returns quietly: nobody is warned.
    grads = jnp.zeros((4, 3)).at[2].set(jnp.nan)
    params = jnp.ones((4, 3))
    update = decopt.spmd(self.bad.update)
    updates, _ = update(grads, decopt.spmd(self.bad.init)(params), params)
    self.assertFalse(np.isfinite(updates).all())


if __name__ == '__main__':
  absltest.main()
