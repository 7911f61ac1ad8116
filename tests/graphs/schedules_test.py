"""Pairs, compositions and directed draws: who meets whom, and when."""

import itertools

import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from decopt import graphs

NUMBERS = range(1, 65)


def _meetings(topology):
  """How often each two workers exchange values in a period."""
  together = (topology.weights > 0).sum(axis=0)
  np.fill_diagonal(together, 0)
  return together


class RoundRobinTest(parameterized.TestCase):
  def test_every_two_workers_meet_once_in_a_period(self):
    for n in NUMBERS:
      np.testing.assert_array_equal(
        _meetings(graphs.round_robin(n)), ~np.eye(n, dtype=bool)
      )

  def test_nobody_rests_if_the_number_is_even_and_each_once_if_it_is_odd(self):
    for n in NUMBERS:
      topology = graphs.round_robin(n)
      self.assertEqual(topology.period, n if n % 2 else n - 1)
      rests = (topology.weights[:, range(n), range(n)] == 1).sum(axis=0)
      self.assertEqual(set(rests.tolist()), {n % 2})
      self.assertLessEqual(topology.degree, 1)

  def test_workers_meet_whose_numbers_add_up_to_twice_the_round(self):
    partners = [
      graphs.round_robin(6).permutations(t)[0][0].tolist() for t in range(3)
    ]
    self.assertEqual(
      partners, [[5, 4, 3, 2, 1, 0], [2, 5, 0, 4, 3, 1], [4, 3, 5, 1, 0, 2]]
    )


class RandomMatchingsTest(parameterized.TestCase):
  def test_all_meet_in_each_round_but_one_of_an_odd_number(self):
    for n in NUMBERS:
      topology = graphs.random_matchings(n, seed=n)
      self.assertEqual(topology.period, 16)
      keeps = topology.weights[:, range(n), range(n)]
      np.testing.assert_array_equal((keeps == 1).sum(axis=1), n % 2)
      self.assertContainsSubset(keeps.ravel().tolist(), [0.5, 1])

  def test_partners_are_everyone_about_as_often(self):
    meetings = _meetings(graphs.random_matchings(8, 700))
    others = meetings[~np.eye(8, dtype=bool)]
    self.assertLess(np.abs(others - 100).max(), 4 * np.sqrt(100))

  def test_two_rounds_are_drawn_until_they_connect_all(self):
    for n, seed in itertools.product((4, 5, 32, 63), range(5)):
      topology = graphs.random_matchings(n, 2, seed=seed)
      self.assertTrue(topology.is_connected())

  def test_one_round_is_a_matching_and_no_more(self):
    self.assertFalse(graphs.random_matchings(8, 1).is_connected())
    self.assertEqual(graphs.random_matchings(2, 1).spectral_gap(), 1)

  def test_rounds_are_a_positive_integer(self):
    with self.assertRaisesRegex(ValueError, '1 or more as rounds.*got 0'):
      graphs.random_matchings(8, 0)


class TwoLevelTest(parameterized.TestCase):
  @parameterized.parameters((1, 5), (4, 1), (3, 4), (8, 2))
  def test_is_the_mean_within_machines_then_gossip_between_them(
    self, machines, size
  ):
    topology = graphs.two_level(machines, size)
    x = np.random.default_rng(0).normal(size=(machines, size))
    means = graphs.ring(machines).weights[0] @ x.mean(axis=1)
    np.testing.assert_allclose(
      topology.weights[0] @ x.ravel(), np.repeat(means, size), atol=1e-14
    )

  @parameterized.named_parameters(
    ('ring', graphs.ring),
    ('directed', lambda n: graphs.ring(n, directed=True)),
    ('periodic', graphs.one_peer_exponential),
  )
  def test_agrees_as_quickly_as_the_machines_do(self, between):
    for machines, size in ((2, 3), (5, 2), (6, 4), (7, 1)):
      outer = between(machines)
      topology = graphs.two_level(machines, size, between)
      self.assertEqual(topology.period, outer.period)
      self.assertAlmostEqual(topology.spectral_gap(), outer.spectral_gap(), 9)
      self.assertEqual(topology, graphs.two_level(machines, size, outer))

  def test_push_sum_between_machines_stays_push_sum(self):
    topology = graphs.two_level(5, 2, graphs.random_out_degree)
    self.assertTrue(topology.is_column_stochastic())
    self.assertFalse(topology.is_row_stochastic())

  def test_other_numbers_of_machines_are_refused(self):
    with self.assertRaisesRegex(
      ValueError, "got 4 machines.*'star' between them has 6.*machines=6"
    ):
      graphs.two_level(4, 2, graphs.star(6))

  def test_what_is_no_topology_is_refused(self):
    with self.assertRaisesRegex(TypeError, r'got 3\. Use between=decopt\.ring'):
      graphs.two_level(4, 2, 3)
    with self.assertRaisesRegex(TypeError, r'got None\. .*decopt\.ring\(4\)'):
      graphs.two_level(4, 2, lambda machines: None)


class AlternateTest(parameterized.TestCase):
  def test_rounds_come_one_after_the_other(self):
    parts = (
      graphs.one_peer_exponential(8),
      graphs.star(8),
      graphs.base_graph(8, 2),
    )
    topology = graphs.alternate(*parts)
    self.assertEqual(topology.period, sum(part.period for part in parts))
    expected = [weights for part in parts for weights in part.weights]
    np.testing.assert_array_equal(topology.weights, expected)

  def test_pieces_that_never_meet_do_together(self):
    pairs, others = graphs.one_peer_exponential(4, symmetric=True).weights
    first, second = decopt.Topology(pairs, 'a'), decopt.Topology(others, 'b')
    self.assertFalse(first.is_connected())
    self.assertEqual(graphs.alternate(first, second).spectral_gap(), 1)

  def test_one_topology_is_itself(self):
    np.testing.assert_array_equal(
      graphs.alternate(graphs.ring(5)).weights, graphs.ring(5).weights
    )

  def test_numbers_of_workers_that_differ_are_refused(self):
    with self.assertRaisesRegex(ValueError, "'ring' has 8 and 'star' has 6"):
      graphs.alternate(graphs.ring(8), graphs.ring(8), graphs.star(6))

  def test_nothing_and_what_is_no_topology_are_refused(self):
    with self.assertRaisesRegex(ValueError, r'Use decopt.alternate\(deco'):
      graphs.alternate()
    with self.assertRaisesRegex(TypeError, 'one by one'):
      graphs.alternate([graphs.ring(8), graphs.star(8)])
    with self.assertRaisesRegex(TypeError, 'one by one'):
      graphs.alternate(graphs.ring)

  def test_rows_and_columns_do_not_mix(self):
    skewed = graphs.random_out_degree(8)
    heard = decopt.Topology(skewed.weights[0].T, 'rows')
    with self.assertRaisesRegex(ValueError, 'rows that sum to 1'):
      graphs.alternate(skewed, heard)


class RandomOutDegreeTest(parameterized.TestCase):
  def test_each_worker_sends_to_as_many_others(self):
    for n in NUMBERS:
      for degree in (1, 2, 3, 7):
        topology = graphs.random_out_degree(n, degree, seed=n)
        sends = (topology.weights[0] > 0).sum(axis=0) - 1
        self.assertEqual(set(sends.tolist()), {min(degree, n - 1)})
        self.assertTrue(topology.is_connected())

  def test_workers_hear_more_or_fewer(self):
    for n in NUMBERS[3:]:
      for degree in {2, 3, n - 2} - {n - 1}:
        topology = graphs.random_out_degree(n, degree, seed=n)
        hears = (topology.weights[0] > 0).sum(axis=1)
        self.assertGreater(hears.max(), hears.min(), (n, degree))
        self.assertFalse(topology.is_row_stochastic())

  @parameterized.parameters((4, 2, 9), (4, 2, 14), (5, 3, 12))
  def test_a_draw_in_which_all_hear_as_many_is_drawn_again(
    self, n, degree, seed
  ):
    topology = graphs.random_out_degree(n, degree, seed=seed)
    self.assertFalse(topology.is_row_stochastic())

  def test_few_workers_send_to_all(self):
    for n in range(1, 6):
      np.testing.assert_allclose(
        graphs.random_out_degree(n, 4).weights, 1 / n, atol=1e-15
      )

  def test_one_other_is_a_random_circle(self):
    topology = graphs.random_out_degree(9, 1)
    self.assertTrue(topology.is_doubly_stochastic())
    gap = graphs.ring(9, directed=True).spectral_gap()
    self.assertAlmostEqual(topology.spectral_gap(), gap)
    in_order = graphs.ring(9, directed=True).weights.tolist()
    for seed in range(5):
      drawn = graphs.random_out_degree(9, 1, seed=seed).weights.tolist()
      self.assertNotEqual(drawn, in_order)

  def test_degrees_are_positive_integers(self):
    with self.assertRaisesRegex(ValueError, '1 or more as degree.*got 0'):
      graphs.random_out_degree(8, 0)


if __name__ == '__main__':
  absltest.main()
