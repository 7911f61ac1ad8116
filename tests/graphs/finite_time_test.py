"""Base-(k+1) graphs: the exact mean after one period, for every number."""

import functools
import math

import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

from decopt import graphs


@functools.cache
def _graph(n, degree):
  return graphs.base_graph(n, degree)


def _product(topology):
  product = np.eye(topology.workers)
  for weights in topology.weights:
    product = weights @ product
  return product


class BaseGraphTest(parameterized.TestCase):
  @parameterized.parameters(1, 2, 3, 4)
  def test_one_period_gives_the_exact_mean_for_every_number(self, degree):
    for n in range(1, 100):
      topology = _graph(n, degree)
      np.testing.assert_allclose(
        _product(topology), 1 / n, rtol=0, atol=1e-12, err_msg=str(topology)
      )
      if n < 33:
        self.assertEqual(topology.spectral_gap(), 1)
      self.assertTrue(topology.is_symmetric())
      self.assertTrue(topology.is_doubly_stochastic())

  @parameterized.parameters(1, 2, 3, 4)
  def test_no_worker_has_more_neighbours_than_allowed(self, degree):
    for n in range(1, 100):
      links = _graph(n, degree).weights > 0
      self.assertLessEqual(links.sum(axis=2).max() - 1, degree)

  @parameterized.parameters(1, 2, 3, 4)
  def test_the_period_is_within_the_bound_of_the_paper(self, degree):
    for n in range(1, 100):
      period = _graph(n, degree).period
      self.assertLessEqual(period, 2 * math.log(n, degree + 1) + 2, n)

  @parameterized.parameters(1, 2, 3, 4)
  def test_powers_take_as_many_rounds_as_their_exponent(self, degree):
    for exponent in range(1, 4):
      topology = graphs.base_graph((degree + 1) ** exponent, degree)
      self.assertEqual(topology.period, exponent)

  def test_two_at_a_time_is_a_hypercube_in_rounds(self):
    for n in (2, 4, 8, 16):
      self.assertCountEqual(
        graphs.base_graph(n).weights.tolist(),
        graphs.one_peer_exponential(n, symmetric=True).weights.tolist(),
      )

  def test_every_round_is_needed(self):
    for n in range(2, 40):
      topology = graphs.base_graph(n, 2)
      for t in range(topology.period):
        others = np.delete(topology.weights, t, axis=0)
        product = np.linalg.multi_dot([np.eye(n), *others[::-1], np.eye(n)])
        self.assertGreater(np.abs(product - 1 / n).max(), 1e-3, (n, t))

  def test_five_workers_hand_on_their_mean_with_uneven_weights(self):
    # 5 = 4 + 1: four agree, the last meets one of them, the four agree again.
    topology = graphs.base_graph(5)
    self.assertEqual(topology.period, 5)
    meet = np.eye(5)
    meet[[0, 4], [4, 0]] = 4 / 5
    meet[[0, 4], [0, 4]] = 1 / 5
    np.testing.assert_allclose(topology.weights[2], meet, atol=1e-15)
    pairs = 2 * graphs.one_peer_exponential(4, symmetric=True).weights
    for t, pair in ((0, 1), (1, 0), (3, 1), (4, 0)):
      halves = topology.weights[t, :4, :4] * 2
      self.assertIn(halves.tolist(), pairs.tolist(), (t, pair))

  @parameterized.parameters(
    (6, 1, 4), (12, 1, 5), (24, 1, 6), (10, 2, 4), (22, 4, 4)
  )
  def test_factors_make_it_shorter_than_digits(self, n, degree, period):
    # By digits in base 2 alone, 6 = 4 + 2 takes 2 + 1 + 2 rounds.
    self.assertEqual(graphs.base_graph(n, degree).period, period)

  def test_enough_neighbours_make_it_complete(self):
    for n in (2, 5, 11):
      for degree in (n - 1, n, 64):
        np.testing.assert_array_equal(
          graphs.base_graph(n, degree).weights, graphs.complete(n).weights
        )

  def test_composite_sides_are_split_to_send_less(self):
    # 12 workers by 4 and 3 send five messages in two rounds, by 6 and 2 six.
    topology = graphs.base_graph(12, 5)
    self.assertEqual(topology.period, 2)
    self.assertEqual((topology.weights[:, 0] > 0).sum(), 4 + 3)

  def test_b17_rounds_are_counted_in_integers(self):
    # log(243, 3) and log(1000, 10) are not the integers they should be.
    self.assertEqual(graphs.base_graph(243, 2).period, 5)
    self.assertEqual(graphs.base_graph(1000, 9).period, 3)
    self.assertEqual(graphs.base_graph(125, 4).period, 3)

  def test_degrees_are_positive_integers(self):
    with self.assertRaisesRegex(ValueError, '1 or more as degree.*got 0'):
      graphs.base_graph(4, 0)
    with self.assertRaisesRegex(TypeError, r'integer as degree.*got 1\.5'):
      graphs.base_graph(4, 1.5)


if __name__ == '__main__':
  absltest.main()
