"""Graphs that are drawn: reproducible, connected, and what their name says."""

import random
from unittest import mock

import jax.numpy as jnp
import networkx
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

from decopt import graphs
from decopt.graphs import links

NUMBERS = range(1, 65)

# All functions of a seed, with 16 workers.
RANDOM = (
  ('barabasi_albert', lambda seed: graphs.barabasi_albert(16, seed=seed)),
  ('erdos_renyi', lambda seed: graphs.erdos_renyi(16, seed=seed)),
  ('expander', lambda seed: graphs.expander(16, seed=seed)),
  ('random_matchings', lambda seed: graphs.random_matchings(16, seed=seed)),
  ('random_out_degree', lambda seed: graphs.random_out_degree(16, seed=seed)),
  ('random_regular', lambda seed: graphs.random_regular(16, seed=seed)),
  ('watts_strogatz', lambda seed: graphs.watts_strogatz(16, seed=seed)),
)


def _links(topology):
  return (topology.weights[0] > 0) & ~np.eye(topology.workers, dtype=bool)


class SeedTest(parameterized.TestCase):
  @parameterized.named_parameters(*RANDOM)
  def test_b20_the_same_seed_gives_the_same_graph(self, graph):
    for seed in range(5):
      self.assertEqual(graph(seed), graph(seed))
      self.assertEqual(graph(seed), graph(np.int64(seed)))

  @parameterized.named_parameters(*RANDOM)
  def test_each_seed_gives_a_graph_of_its_own(self, graph):
    self.assertLen({graph(seed) for seed in range(10)}, 10)

  @parameterized.named_parameters(*RANDOM)
  def test_nobody_elses_random_numbers_are_touched(self, graph):
    random.seed(1)
    np.random.seed(1)
    first = graph(0)
    drawn = random.random(), np.random.random()
    random.seed(1)
    np.random.seed(1)
    self.assertEqual(drawn, (random.random(), np.random.random()))
    self.assertEqual(first, graph(0))

  @parameterized.named_parameters(*RANDOM)
  def test_seeds_are_whole_numbers(self, graph):
    with self.assertRaisesRegex(ValueError, '0 or more as seed.*got -1'):
      graph(-1)
    with self.assertRaisesRegex(TypeError, 'integer as seed.*got None'):
      graph(None)


class GivingUpTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('erdos_renyi', graphs.erdos_renyi, (32, 0.08), 'probability=0.217, w'),
    ('expander', graphs.expander, (64, 3), 'degree=5, or another seed'),
    ('matchings', graphs.random_matchings, (32, 2), 'rounds=4 or more'),
    ('out_degree', graphs.random_out_degree, (4, 2), 'another seed or degree'),
    ('random_regular', graphs.random_regular, (64, 2), 'degree=4'),
    ('watts', graphs.watts_strogatz, (64, 2, 1), 'neighbours=4, or a smaller'),
  )
  def test_a_draw_that_does_not_do_is_thrown_away(self, graph, sizes, advice):
    refused = []
    with mock.patch.object(links, '_ATTEMPTS', 1):
      for seed in range(40):
        try:
          graph(*sizes, seed=seed)
        except ValueError as error:
          refused.append((seed, str(error)))
    self.assertNotEmpty(refused)
    for seed, error in refused:
      self.assertRegex(error, rf'Use {advice}.*\(1 graphs were drawn\.\)')
      self.assertTrue(graph(*sizes, seed=seed).is_connected())


class MetropolisTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('erdos_renyi', graphs.erdos_renyi),
    ('watts_strogatz', graphs.watts_strogatz),
    ('barabasi_albert', graphs.barabasi_albert),
  )
  def test_a_link_has_the_weight_of_its_busier_end(self, graph):
    topology = graph(16)
    meets = _links(topology)
    degrees = meets.sum(axis=1)
    self.assertGreater(np.ptp(degrees), 1)
    for i, j in np.argwhere(meets):
      expected = 1 / (1 + max(degrees[i], degrees[j]))
      self.assertAlmostEqual(topology.weights[0, i, j], expected, 15)


class ErdosRenyiTest(parameterized.TestCase):
  def test_has_the_fraction_of_links_that_was_asked_for(self):
    drawn = [
      _links(graphs.erdos_renyi(64, 0.3, seed=seed)).sum() / (64 * 63)
      for seed in range(50)
    ]
    deviation = np.sqrt(0.3 * 0.7 / (64 * 63 / 2) / 50)
    self.assertLess(abs(np.mean(drawn) - 0.3), 4 * deviation)

  def test_probability_one_is_complete(self):
    for n in NUMBERS:
      np.testing.assert_allclose(
        graphs.erdos_renyi(n, 1).weights, 1 / n, atol=1e-15
      )

  @parameterized.parameters(0, 0.01, 1e-9)
  def test_too_few_links_are_refused_with_a_probability_that_does(self, few):
    for n in (3, 17, 64):
      enough = f'{min(1, 2 * np.log(n) / n):.3g}'
      with self.assertRaisesRegex(ValueError, f'connected.*={enough}, which'):
        graphs.erdos_renyi(n, few)
      self.assertTrue(graphs.erdos_renyi(n, float(enough)).is_connected())

  @parameterized.parameters(np.float64, np.float32, np.array, jnp.float32)
  def test_probabilities_may_come_from_numpy_and_jax(self, kind):
    self.assertEqual(
      graphs.erdos_renyi(8, kind(0.5)), graphs.erdos_renyi(8, 0.5)
    )

  @parameterized.parameters(-0.1, 1.01, float('nan'))
  def test_probabilities_are_from_zero_to_one(self, probability):
    for graph in graphs.erdos_renyi, graphs.watts_strogatz:
      with self.assertRaisesRegex(ValueError, f'from 0 to 1.*{probability}'):
        graph(8, probability=probability)
      with self.assertRaisesRegex(TypeError, "as probability.*got 'half'"):
        graph(8, probability='half')


class WattsStrogatzTest(parameterized.TestCase):
  def test_nothing_moved_is_a_ring_with_more_neighbours(self):
    near = graphs.watts_strogatz(16, 4, 0).weights[0]
    for offset in (0, 1, 2, -1, -2):
      np.testing.assert_allclose(np.diag(np.roll(near, offset, 1)), 1 / 5)

  def test_moving_links_keeps_their_number(self):
    for seed in range(10):
      links = _links(graphs.watts_strogatz(32, 6, 0.7, seed=seed))
      self.assertEqual(links.sum(), 32 * 6)

  def test_few_workers_are_all_linked_to_all(self):
    for n in range(1, 10):
      np.testing.assert_allclose(
        graphs.watts_strogatz(n, 8).weights, 1 / n, atol=1e-15
      )

  def test_an_odd_number_of_neighbours_is_refused(self):
    with self.assertRaisesRegex(ValueError, r'even .*got 5\. Use 4 or 6'):
      graphs.watts_strogatz(16, 5)
    with self.assertRaisesRegex(ValueError, '2 or more as neighbours.*got 0'):
      graphs.watts_strogatz(16, 0)


class BarabasiAlbertTest(parameterized.TestCase):
  @parameterized.parameters(1, 2, 3)
  def test_each_newcomer_makes_as_many_links(self, links):
    for n in (16, 33):
      made = _links(graphs.barabasi_albert(n, links)).sum() / 2
      self.assertEqual(made, links + (n - links - 1) * links)

  def test_the_first_ones_know_the_most(self):
    degrees = np.mean(
      [
        _links(graphs.barabasi_albert(64, seed=seed)).sum(axis=1)
        for seed in range(30)
      ],
      axis=0,
    )
    self.assertGreater(degrees[0], 3 * degrees[-32:].mean())
    self.assertGreater(degrees[3], degrees[16])

  def test_few_workers_are_all_linked_to_all(self):
    for n in range(1, 6):
      np.testing.assert_allclose(
        graphs.barabasi_albert(n, 5).weights, 1 / n, atol=1e-15
      )

  def test_links_are_a_positive_integer(self):
    with self.assertRaisesRegex(ValueError, '1 or more as links.*got 0'):
      graphs.barabasi_albert(8, 0)


class RandomRegularTest(parameterized.TestCase):
  def test_all_workers_have_as_many_neighbours(self):
    for n in (2, 3, 8, 13, 32, 64):
      for degree in range(min(n - 1, 2), n):
        if n * degree % 2 == 0:
          topology = graphs.random_regular(n, degree)
          links = _links(topology)
          self.assertEqual(set(links.sum(axis=0).tolist()), {degree})
          np.testing.assert_array_equal(links, links.T)
          self.assertTrue(topology.is_connected())

  def test_two_neighbours_are_one_circle_in_random_order(self):
    for n in range(3, 20):
      graph = networkx.Graph(_links(graphs.random_regular(n, 2, seed=n)))
      self.assertTrue(networkx.is_connected(graph))

  @parameterized.parameters(3, 5)
  def test_odd_numbers_are_refused_with_the_nearest_that_work(self, degree):
    for n in range(degree + 2, 65, 2):
      numbers = [m for m in (n - 1, n + 1) if m > degree]
      advice = (
        f'got {n} workers and degree={degree}. Use {numbers[0]} or '
        f'{numbers[1]} workers, or degree={degree - 1} or {degree + 1}.'
      )
      with self.assertRaisesWithLiteralMatch(
        ValueError,
        'random_regular needs an even number of workers if the degree is odd, '
        'but ' + advice,
      ):
        graphs.random_regular(n, degree)
      for m in numbers:
        self.assertTrue(graphs.random_regular(m, degree).is_connected())
      for other in (degree - 1, degree + 1):
        self.assertTrue(graphs.random_regular(n, other).is_connected())

  @parameterized.parameters(2, 3, 4)
  def test_too_few_workers_are_refused_with_the_fewest(self, degree):
    for n in range(1, degree + 1):
      advice = rf'got {n}\. Use decopt.random_regular\({degree + 1}, deg'
      with self.assertRaisesRegex(ValueError, rf'{advice}.*complete\({n}\)'):
        graphs.random_regular(n, degree)
    np.testing.assert_allclose(
      graphs.random_regular(degree + 1, degree).weights, 1 / (degree + 1)
    )

  def test_pairs_that_never_meet_are_refused(self):
    with self.assertRaisesRegex(ValueError, r'degree=2 or.*matchings\(8\)'):
      graphs.random_regular(8, 1)

  def test_a_thousand_workers_are_split_into_few_permutations(self):
    topology = graphs.random_regular(1024, 4)
    self.assertLen(topology.permutations(0), 4)


class ExpanderTest(parameterized.TestCase):
  @parameterized.parameters(3, 4, 5, 6)
  def test_gap_does_not_shrink_with_the_number_of_workers(self, degree):
    bound = (degree - 2 * np.sqrt(degree - 1)) / (degree + 1)
    for n in (*range(1, 65), 256):
      if n * degree % 2 == 0 or n <= degree:
        topology = graphs.expander(n, degree)
        self.assertGreaterEqual(topology.spectral_gap(), bound - 1e-9)
        self.assertEqual(topology.degree, min(degree, n - 1))

  def test_all_eigenvalues_but_the_largest_are_small(self):
    for n in range(6, 65):
      adjacency = _links(graphs.expander(n)).astype(float)
      *others, largest = np.linalg.eigvalsh(adjacency)
      self.assertAlmostEqual(largest, 4)
      self.assertLessEqual(np.abs(others).max(), 2 * np.sqrt(3) + 1e-9)

  def test_few_workers_are_all_linked_to_all(self):
    for n in range(1, 6):
      np.testing.assert_allclose(graphs.expander(n).weights, 1 / n, atol=1e-15)

  @parameterized.parameters(3, 5)
  def test_odd_numbers_are_refused_with_the_nearest_that_work(self, degree):
    for n in range(degree + 2, 40, 2):
      with self.assertRaises(ValueError) as caught:
        graphs.expander(n, degree)
      _, advice = str(caught.exception).split(' Use ')
      numbers, degrees = advice.split(' workers, or degree=')
      for m in map(int, numbers.split(' or ')):
        self.assertEqual(graphs.expander(m, degree).workers, m)
      for other in map(int, degrees.rstrip('.').split(' or ')):
        self.assertEqual(graphs.expander(n, other).workers, n)

  def test_rings_are_refused(self):
    with self.assertRaisesRegex(ValueError, '3 or more as degree.*got 2'):
      graphs.expander(9, 2)


if __name__ == '__main__':
  absltest.main()
