"""Defects of other systems, each with the check that would have caught it."""

import jax
import jax.numpy as jnp
import networkx
import numpy as np
import optax
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from decopt import graphs

NUMBERS = range(1, 65)


class PublishedBugTest(parameterized.TestCase):
  def test_b1_torus_with_a_side_of_two_sums_to_one(self):
    # A / 5 with a double edge counted once gives rows that sum to 0.6 or 0.8.
    for sides in ((2, 2), (2, 3), (2, 4), (2, 5), (1, 2), (1, 1)):
      weights = graphs.torus(*sides).weights
      np.testing.assert_allclose(weights.sum(axis=2), 1, rtol=0, atol=1e-15)

  def test_b2_expander_needs_no_prime_number(self):
    # Inverses modulo a number that is no prime gave rows that sum to 2.67.
    for n in NUMBERS:
      weights = graphs.expander(n).weights[0]
      np.testing.assert_allclose(weights.sum(axis=0), 1, rtol=0, atol=1e-15)
      np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=0, atol=1e-15)
      np.testing.assert_array_equal(weights, weights.T)

  @parameterized.parameters(False, True)
  def test_b8_one_peer_offsets_are_the_powers_of_two_in_each_period(
    self, symmetric
  ):
    # 2 ** (i % d) written as 2 ** i % d gives other offsets after a while.
    for n in NUMBERS[1:]:
      topology = graphs.one_peer_exponential(n, symmetric=symmetric)
      powers = [1 << t for t in range(topology.period)]
      for first in (0, topology.period, 7 * topology.period):
        for t, power in enumerate(powers, first):
          [(sources, _)] = topology.permutations(t)
          if symmetric:
            offsets = set((np.arange(n) ^ sources).tolist()) - {0}
            self.assertEqual(offsets, {power})
          else:
            offsets = set(((np.arange(n) - sources) % n).tolist())
            self.assertEqual(offsets, {power % n})

  def test_b15_a_fixed_graph_uses_all_of_its_links_in_each_round(self):
    # A baseline activated one of two matchings in turns, and half of the links.
    for graph in (networkx.petersen_graph(), networkx.karate_club_graph()):
      topology = decopt.metropolis(graph)
      for step in range(6):
        matrix = np.diag(topology.self_weights(step))
        for sources, heard in topology.permutations(step):
          matrix[np.arange(len(graph)), sources] += heard
        links = (matrix > 0) & ~np.eye(len(graph), dtype=bool)
        np.testing.assert_array_equal(
          links, networkx.to_numpy_array(graph, weight=None)
        )
        np.testing.assert_allclose(matrix, topology.weights[0], atol=1e-15)

  def test_b21_one_step_is_w_times_x_whatever_the_sample_counts(self):
    # A published gossip averaged by sample counts and never read its matrix.
    topology = decopt.metropolis(networkx.lollipop_graph(4, 4))
    counts = np.array([1, 2, 3, 5, 8, 13, 21, 34])
    rng = np.random.default_rng(0)
    x = rng.normal(size=8).astype(np.float32)
    samples = rng.normal(size=(8, 34)).astype(np.float32)
    mine = np.arange(34) < counts[:, None]
    optimizer = decopt.diffusion(optax.sgd(0.1), topology)

    def step(x, samples, mine):
      def loss(x):
        return jnp.mean((x - samples) ** 2, where=mine)

      updates, _ = optimizer.update(jax.grad(loss)(x), optimizer.init(x), x)
      return x + updates

    moved = jax.vmap(step, axis_name=decopt.WORKERS)(x, samples, mine)
    gradients = 2 * (x - np.mean(samples, axis=1, where=mine))
    expected = topology.weights[0] @ (x - 0.1 * gradients)
    np.testing.assert_allclose(moved, expected, rtol=1e-5, atol=1e-6)

  @parameterized.named_parameters(
    ('one_peer', graphs.one_peer_exponential),
    ('base', graphs.base_graph),
    ('matchings', graphs.random_matchings),
    ('round_robin', graphs.round_robin),
    ('alternate', lambda n: graphs.alternate(graphs.ring(n), graphs.star(n))),
  )
  def test_b16_the_round_depends_on_the_step_only(self, graph):
    # A counter of calls moved on for each layer of a model, not for each step.
    topology, again = graph(12), graph(12)
    steps = [0, 0, 5, 3, 3, 3, 1, 0, *range(3 * topology.period)]
    for step in steps:
      t = step % topology.period
      np.testing.assert_array_equal(
        topology.self_weights(step), topology.weights[t].diagonal()
      )
      mine, other = topology.permutations(step), again.permutations(t)
      for first, second in zip(mine, other, strict=True):
        np.testing.assert_array_equal(first, second)
        np.testing.assert_array_equal(
          first[1], np.where(first[0] == range(12), 0, first[1])
        )

  def test_b17_powers_are_found_in_integers(self):
    # log(243, 3) and log(1000, 10) are not the integers they should be.
    for d in range(11):
      self.assertEqual(graphs.hypercube(1 << d).degree, d)
      self.assertEqual(graphs.exponential(1 << d).degree, d)
      self.assertEqual(graphs.exponential((1 << d) + 1).degree, d + 1)

  def test_b17_columns_sum_to_one_whoever_hears_how_many(self):
    # 1 / (heard + 1) gave columns that sum to anything from 0.58 to 1.5.
    for n in NUMBERS:
      for degree in (1, 2, 5):
        weights = graphs.random_out_degree(n, degree).weights[0]
        np.testing.assert_allclose(weights.sum(axis=0), 1, rtol=0, atol=1e-15)

  def test_b19_only_graphs_that_say_so_need_no_debiasing(self):
    # An irregular graph that called itself regular was never de-biased: its
    # limit weighs workers unevenly, though it says that it does not.
    for topology in (
      graphs.chain(9),
      graphs.star(9),
      graphs.binary_tree(9),
      graphs.barabasi_albert(9),
      graphs.random_out_degree(9),
      graphs.random_out_degree(9, 1),
    ):
      limit = np.linalg.matrix_power(topology.weights[0], 10_000)
      even = np.abs(limit - 1 / 9).max() < 1e-9
      self.assertEqual(even, topology.is_doubly_stochastic(), topology)
      np.testing.assert_allclose(limit.sum(axis=0), 1, rtol=0, atol=1e-9)


if __name__ == '__main__':
  absltest.main()
