"""The two rules for lost weight, against loops and by their sums."""

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from decopt import reweighting
from tests import helpers
from tests import lossy
from tests import oracle

TOPOLOGIES = {
  'ring': decopt.ring(9),
  'star': decopt.star(9),
  'wheel': helpers.irregular(9),
  'one_way': lossy.digraph(9),
  'biased': helpers.biased(9),
  # With nothing on themselves.
  'swap': decopt.Topology(np.roll(np.eye(9), 1, axis=0), 'shift'),
}
RULES = {
  'kept_by_senders': (reweighting.kept_by_senders, oracle.kept_by_senders),
  'renormalized': (reweighting.renormalized, oracle.renormalized),
}


def _arrived(seed, *, together=False):
  arrived = np.random.default_rng(seed).random((9, 9)) < 0.6
  return np.tril(arrived) | np.tril(arrived).T if together else arrived


class RulesTest(parameterized.TestCase):
  @parameterized.named_parameters(helpers.cases(TOPOLOGIES, RULES))
  def test_is_what_the_loops_say(self, topology, rules):
    rule, expected = rules
    [weights] = topology.weights
    with jax.enable_x64(True):
      for seed in range(5):
        arrived = _arrived(seed)
        np.testing.assert_allclose(
          rule(jnp.asarray(weights), jnp.asarray(arrived)),
          expected(weights, arrived),
          rtol=1e-13,
          atol=1e-15,
        )

  @parameterized.named_parameters(helpers.cases(TOPOLOGIES))
  def test_senders_keep_the_sum_of_their_column(self, topology):
    weights = jnp.asarray(topology.weights[0])
    kept = reweighting.kept_by_senders(weights, _arrived(0))
    np.testing.assert_allclose(kept.sum(axis=0), weights.sum(axis=0), rtol=1e-6)
    self.assertGreaterEqual(kept.min(), 0)

  @parameterized.parameters('ring', 'star', 'wheel')
  def test_both_ends_get_back_what_a_symmetric_link_loses(self, name):
    weights = jnp.asarray(TOPOLOGIES[name].weights[0])
    kept = reweighting.kept_by_senders(weights, _arrived(0, together=True))
    np.testing.assert_array_equal(kept, kept.T)
    np.testing.assert_allclose(kept.sum(axis=0), np.ones(9), rtol=1e-6)
    np.testing.assert_allclose(kept.sum(axis=1), np.ones(9), rtol=1e-6)

  @parameterized.named_parameters(helpers.cases(TOPOLOGIES))
  def test_b22_renormalized_rows_never_sum_to_less_than_one(self, topology):
    # A published implementation left the lost weight out, and iterates shrank.
    weights = jnp.asarray(topology.weights[0])
    for seed in range(5):
      rows = reweighting.renormalized(weights, _arrived(seed)).sum(axis=1)
      np.testing.assert_allclose(rows, np.ones(9), rtol=1e-6)

  def test_who_hears_nothing_and_kept_nothing_stays_where_it_is(self):
    weights = jnp.asarray(TOPOLOGIES['swap'].weights[0])
    nothing = np.zeros((9, 9), bool)
    for rule in (reweighting.renormalized, reweighting.kept_by_senders):
      np.testing.assert_array_equal(rule(weights, nothing), np.eye(9))

  @parameterized.named_parameters(helpers.cases(TOPOLOGIES, RULES))
  def test_without_losses_weights_stay(self, topology, rules):
    weights = jnp.asarray(topology.weights[0])
    if topology.is_row_stochastic() or rules is RULES['kept_by_senders']:
      for arrived in (np.ones((9, 9), bool), ~np.eye(9, dtype=bool)):
        np.testing.assert_allclose(
          rules[0](weights, arrived), weights, rtol=1e-6
        )


class ReweighTest(parameterized.TestCase):
  def test_without_faults_there_is_nothing_to_do(self):
    self.assertIsNone(reweighting.start(None, 8))
    self.assertEqual(
      reweighting.reweigh(None, None, decopt.ring(8), 0, directed=False),
      (None, None),
    )

  def test_takes_the_round_of_the_step(self):
    topology = lossy.changing(8)
    nothing_lost = decopt.link_drops(0.0)
    for step in range(4):
      weights, _ = reweighting.reweigh(
        nothing_lost,
        reweighting.start(nothing_lost, 8),
        topology,
        jnp.int32(step),
        directed=False,
      )
      np.testing.assert_allclose(weights, topology.weights[step % 2], rtol=1e-6)

  def test_calculates_in_the_widest_numbers_there_are(self):
    for wide in (False, True):
      with jax.enable_x64(wide):
        weights, _ = reweighting.reweigh(
          decopt.link_drops(0.5),
          decopt.Shared(()),
          decopt.ring(8),
          0,
          directed=True,
        )
        self.assertEqual(weights.dtype, jnp.float64 if wide else jnp.float32)


if __name__ == '__main__':
  absltest.main()
