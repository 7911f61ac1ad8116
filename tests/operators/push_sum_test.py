"""Push-sum finds the true mean on one-way links, with and without losses."""

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
from tests import programs

ROUNDS = 1000
ONE_WAY = {
  'fixed': lossy.digraph(8),
  'changing': lossy.changing_digraph(8),
  # A worker that everybody hears, and hears one.
  'from_a_star': decopt.column_stochastic(decopt.star(8)),
}
FAULTS = {
  'none': None,
  'drops': decopt.link_drops(0.3),
  'bursts': decopt.link_bursts(0.05, 0.2),
  'all': lossy.FAULTS,
}


def _history(transform, z, rounds, execute=decopt.spmd):
  """Parameters [rounds, workers, d] and weights [rounds, workers]."""

  def run(z):
    def body(carry, _):
      z, state = carry
      updates, state = transform.update(jnp.zeros_like(z), state, z)
      z = optax.apply_updates(z, updates)
      return (z, state), (z, state.weight)

    return jax.lax.scan(body, (z, transform.init(z)), length=rounds)[1]

  z, weights = map(np.asarray, execute(run)(z))
  return z.swapaxes(0, 1), weights.T


def _start(dtype=np.float32):
  z = np.random.default_rng(0).normal(size=(8, 5)).astype(dtype)
  return z + 3 * np.arange(8, dtype=dtype)[:, None]


class MeanTest(parameterized.TestCase):
  @parameterized.named_parameters(helpers.cases(ONE_WAY, FAULTS))
  def test_b9_for_a_thousand_rounds_sums_stay_up_to_rounding(
    self, topology, faults
  ):
    start = _start(np.float64)
    with jax.enable_x64(True):
      z, weights = _history(
        decopt.push_sum(topology, faults=faults), start, ROUNDS
      )
    numerators = (weights[..., None] * z).sum(axis=1)
    expected = np.broadcast_to(start.sum(axis=0), numerators.shape)
    np.testing.assert_allclose(numerators, expected, rtol=1e-12)
    np.testing.assert_allclose(weights.sum(axis=1), np.full(ROUNDS, 8), 1e-12)
    self.assertTrue((weights > 0).all())

  @parameterized.named_parameters(helpers.cases(ONE_WAY, FAULTS))
  def test_b19_all_workers_reach_the_true_mean(self, topology, faults):
    start = _start()
    z, weights = _history(
      decopt.push_sum(topology, faults=faults), start, ROUNDS
    )
    expected = np.broadcast_to(start.mean(axis=0), start.shape)
    np.testing.assert_allclose(z[-1], expected, rtol=1e-4)
    # The bias that a published implementation left in on such graphs: that of
    # workers that are heard more than others.
    biased = weights[-1][:, None] * z[-1]
    self.assertGreater(np.abs(biased / expected - 1).max(), 0.2)

  def test_plain_averaging_on_these_links_agrees_on_something_else(self):
    start, links = _start(), ONE_WAY['fixed']
    gossip = decopt.gossip(decopt.row_stochastic(links))

    def run(x):
      for _ in range(100):
        x, _ = gossip.update(x, gossip.init(x))
      return x

    x = np.asarray(decopt.spmd(run)(start))
    np.testing.assert_allclose(x, x[[0] * 8], rtol=1e-5)
    self.assertGreater(np.abs(x[0] - start.mean(axis=0)).max(), 0.3)

  def test_weights_become_those_that_the_graph_leaves_alone(self):
    _, weights = _history(decopt.push_sum(ONE_WAY['fixed']), _start(), 300)
    np.testing.assert_allclose(
      ONE_WAY['fixed'].weights[0] @ weights[-1], weights[-1], rtol=1e-5
    )

  @parameterized.named_parameters(
    helpers.cases({'none': None, 'all': lossy.FAULTS}, helpers.EXECUTORS)
  )
  def test_is_the_recursion_with_the_same_losses(self, faults, execute):
    topology = ONE_WAY['changing']
    rounds = topology.weights if faults is None else lossy.one_way(8)
    with jax.enable_x64(True):
      z, weights = _history(
        decopt.push_sum(topology, faults=faults),
        _start(np.float64),
        20,
        execute,
      )
    x, w = _start(np.float64), np.ones(8)
    for t in range(20):
      x, w = oracle.mix(x, rounds, t), oracle.mix(w, rounds, t)
      np.testing.assert_allclose(weights[t], w, rtol=1e-12)
      np.testing.assert_allclose(z[t], x / w[:, None], rtol=1e-11)


class IdentitiesTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('ring', decopt.ring(8)),
    ('one_peer', decopt.one_peer_exponential(8)),
    ('one_way_ring', decopt.ring(8, directed=True)),
    ('irregular', helpers.irregular(8)),
  )
  def test_on_doubly_stochastic_weights_it_is_gossip_of_iterates(
    self, topology
  ):
    problem, adam = helpers.LeastSquares(), optax.adam(0.1)
    gossip = decopt.mix_iterates(decopt.gossip(topology))
    with jax.enable_x64(True):
      results = helpers.run(
        decopt.spmd,
        {
          'push_sum': optax.chain(adam, decopt.push_sum(topology)),
          'gossip': optax.chain(adam, gossip),
        },
        problem,
        steps=20,
      )
    np.testing.assert_allclose(
      results['push_sum'], results['gossip'], rtol=1e-10
    )

  def test_faults_that_lose_nothing_change_nothing(self):
    topology = ONE_WAY['changing']
    plain = _history(decopt.push_sum(topology), _start(), 10)
    nothing = decopt.combined(decopt.link_drops(0.0))
    same = _history(decopt.push_sum(topology, faults=nothing), _start(), 10)
    for first, second in zip(plain, same, strict=True):
      np.testing.assert_allclose(first, second, rtol=1e-5)

  def test_narrow_parameters_are_rounded_on_the_way_only(self):
    start = jnp.asarray(_start(), jnp.bfloat16)
    transform = decopt.push_sum(ONE_WAY['fixed'])

    def once(z):
      updates, state = transform.update(0 * z, transform.init(z), z)
      return updates, state.weight

    updates, weight = decopt.spmd(once)(start)
    self.assertEqual(updates.dtype, jnp.bfloat16)
    self.assertEqual(weight.dtype, jnp.float32)
    [weights] = ONE_WAY['fixed'].weights
    exact = np.asarray(start, np.float64)
    exact = weights @ exact / weights.sum(axis=1)[:, None]
    z = np.asarray(start, np.float64) + np.asarray(updates, np.float64)
    error = np.abs(z - exact)
    # One rounding of the sum, one of the update, both of about this size.
    self.assertTrue((error <= 2**-8 * np.maximum(np.abs(exact), 21)).all())


class ProgramTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('ring', decopt.ring(8), 2), ('one_way', ONE_WAY['fixed'], None)
  )
  def test_parameters_and_weight_travel_together(self, topology, messages):
    params = {'a': jnp.zeros((3, 5)), 'b': [jnp.zeros(4), jnp.zeros(())]}
    transform = decopt.push_sum(topology)
    sent = decopt.traffic(transform, params, 8)
    links = (topology.weights[0] > 0).sum() - 8
    self.assertAlmostEqual(sent.messages_per_step, links / 8)
    self.assertAlmostEqual(sent.bytes_per_step, links / 8 * 4 * (15 + 5 + 1))
    execute = helpers.LAYOUTS['mesh']
    stacked = decopt.replicate(params, 8)
    state = execute(transform.init)(stacked)
    program = programs.Program(
      execute(lambda u, s, p: transform.update(u, s, p)),
      stacked,
      state,
      stacked,
    )
    collectives = program.collectives()
    self.assertEqual({i.name for i in collectives}, {'collective-permute'})
    self.assertEqual(sum(i.pairs for i in collectives), links)
    self.assertLen(collectives, topology.degree)
    if messages:
      self.assertLen(collectives, messages)

  def test_a_lost_message_was_sent(self):
    params = jnp.zeros(10)
    plain, lossy_ = (
      decopt.traffic(
        decopt.push_sum(ONE_WAY['changing'], faults=faults), params, 8
      )
      for faults in (None, lossy.FAULTS)
    )
    self.assertEqual(plain.bytes_per_step, lossy_.bytes_per_step)

  def test_the_state_is_one_number_unless_rounds_differ(self):
    state = decopt.push_sum(ONE_WAY['fixed']).init({'a': jnp.zeros(3)})
    self.assertLen(jax.tree.leaves(state), 1)
    self.assertEqual(state.weight, 1)
    state = decopt.push_sum(ONE_WAY['changing']).init({})
    self.assertIsInstance(state.step, decopt.Clock)


class RefusalTest(parameterized.TestCase):
  def test_b17_weights_that_receivers_divide_are_refused(self):
    # A published recipe: each divides by how many it hears, itself included.
    with self.assertRaisesRegex(
      ValueError, r'push_sum needs weights whose columns.*column_stochastic'
    ):
      decopt.push_sum(decopt.row_stochastic(ONE_WAY['fixed']))

  def test_nobody_may_be_left_with_nothing(self):
    sink = decopt.Topology([[0.0, 0.0], [1.0, 1.0]], 'sink')
    with self.assertRaisesRegex(
      ValueError,
      r"'sink' lets worker 0 give all away in round 0: it has nothing .*"
      r'decopt\.lazy\(topology\)\.',
    ):
      decopt.push_sum(sink)
    swap = decopt.Topology([[0.0, 1.0], [1.0, 0.0]], 'swap')
    decopt.push_sum(swap)  # each has what the other gave
    with self.assertRaisesRegex(
      ValueError, "'swap' .* in round 0: it may, with faults, have nothing"
    ):
      decopt.push_sum(swap, faults=decopt.link_drops(0.1))
    decopt.push_sum(decopt.lazy(swap), faults=decopt.link_drops(0.1))

  def test_parameters_are_needed(self):
    transform = decopt.push_sum(decopt.ring(8))
    with self.assertRaisesRegex(ValueError, 'push_sum.*params=None; call'):
      transform.update(jnp.zeros(8), transform.init(jnp.zeros(8)))


if __name__ == '__main__':
  absltest.main()
