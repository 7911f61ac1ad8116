"""Spectra of the named graphs against their formulas, and their neighbours."""

import networkx
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

from decopt import graphs

NUMBERS = range(1, 65)


def _neighbours(topology, worker):
  others = np.flatnonzero(topology.weights[0, worker]).tolist()
  return sorted(set(others) - {worker})


class SpectrumTest(parameterized.TestCase):
  def test_ring_eigenvalues_are_cosines(self):
    for n in NUMBERS[2:]:
      spectrum = 1 / 3 + 2 / 3 * np.cos(2 * np.pi * np.arange(n) / n)
      measured = np.linalg.eigvalsh(graphs.ring(n).weights[0])
      np.testing.assert_allclose(measured, np.sort(spectrum), atol=1e-13)
      gap = 1 - np.abs(spectrum[1:]).max()
      self.assertAlmostEqual(graphs.ring(n).spectral_gap(), gap, 12)
      self.assertAlmostEqual(gap, 2 / 3 * (1 - np.cos(2 * np.pi / n)), 12)

  def test_directed_ring_eigenvalues_are_means_with_roots_of_one(self):
    for n in NUMBERS[1:]:
      roots = np.exp(2j * np.pi * np.arange(n) / n)
      moduli = np.abs((1 + roots) / 2)
      gap = graphs.ring(n, directed=True).spectral_gap()
      self.assertAlmostEqual(gap, 1 - moduli[1:].max(), 12)
      self.assertAlmostEqual(gap, 1 - np.cos(np.pi / n), 12)

  def test_chain_eigenvalues_are_cosines_of_half_angles(self):
    for n in NUMBERS[2:]:
      spectrum = 1 / 3 + 2 / 3 * np.cos(np.pi * np.arange(n) / n)
      measured = np.linalg.eigvalsh(graphs.chain(n).weights[0])
      np.testing.assert_allclose(measured, np.sort(spectrum), atol=1e-13)
      gap = 2 / 3 * (1 - np.cos(np.pi / n))
      self.assertAlmostEqual(graphs.chain(n).spectral_gap(), gap, 12)

  def test_complete_averages_at_once(self):
    for n in NUMBERS:
      np.testing.assert_allclose(graphs.complete(n).weights, 1 / n, rtol=1e-15)
      self.assertEqual(graphs.complete(n).spectral_gap(), 1)

  def test_binary_tree_gap_comes_down_to_a_quarter_over_workers(self):
    scaled = [
      4 * n * graphs.binary_tree(n).spectral_gap() for n in (15, 63, 255, 1023)
    ]
    self.assertEqual(scaled, sorted(scaled, reverse=True))
    self.assertBetween(scaled[0], 1.4, 1.5)
    self.assertBetween(scaled[-1], 1, 1.02)

  def test_star_gap_is_one_over_workers(self):
    for n in NUMBERS[2:]:
      self.assertAlmostEqual(graphs.star(n).spectral_gap(), 1 / n)

  def test_torus_gap_is_set_by_the_longer_side(self):
    for rows in range(3, 9):
      for columns in range(3, 9):
        longer = max(rows, columns)
        gap = 2 / 5 * (1 - np.cos(2 * np.pi / longer))
        measured = graphs.torus(rows, columns).spectral_gap()
        self.assertAlmostEqual(measured, gap, 12, (rows, columns))

  def test_torus_with_a_short_side_has_fewer_neighbours(self):
    np.testing.assert_array_equal(
      graphs.torus(1, 7).weights, graphs.ring(7).weights
    )
    for columns in range(3, 17):
      angles = 2 * np.pi * np.arange(columns) / columns
      across = np.array([1, -1])[:, None]
      spectrum = (1 + across + 2 * np.cos(angles)) / 4
      gap = 1 - np.sort(np.abs(spectrum).ravel())[-2]
      for topology in graphs.torus(2, columns), graphs.torus(columns, 2):
        self.assertEqual(topology.degree, 3)
        self.assertAlmostEqual(topology.spectral_gap(), gap, 12)

  def test_hypercube_gap_is_two_over_neighbours_and_self(self):
    for d in range(1, 9):
      topology = graphs.hypercube(2**d)
      self.assertEqual(topology.degree, d)
      self.assertAlmostEqual(topology.spectral_gap(), 2 / (d + 1), 12)

  def test_exponential_gap_is_exact_for_even_and_a_bound_for_odd_numbers(self):
    for n in NUMBERS[1:]:
      d = int(np.ceil(np.log2(n)))
      gap = graphs.exponential(n).spectral_gap()
      if n % 2 == 0:
        self.assertAlmostEqual(gap, 2 / (d + 1), 12, n)
      else:
        self.assertGreater(gap, 2 / (d + 1), n)

  def test_symmetric_exponential_eigenvalues_are_sums_of_cosines(self):
    for d in range(2, 7):
      n = 2**d
      angles = 2 * np.pi * np.arange(n) / n
      pairs = sum(2 * np.cos(2**t * angles) for t in range(d - 1))
      spectrum = (1 + pairs + np.cos(n / 2 * angles)) / (2 * d)
      topology = graphs.exponential(n, symmetric=True)
      self.assertEqual(topology.degree, 2 * d - 1)
      np.testing.assert_allclose(
        np.linalg.eigvalsh(topology.weights[0]), np.sort(spectrum), atol=1e-13
      )

  @parameterized.parameters(False, True)
  def test_one_peer_exponential_averages_exactly_in_one_period(self, symmetric):
    for d in range(7):
      topology = graphs.one_peer_exponential(2**d, symmetric=symmetric)
      self.assertEqual(topology.period, max(d, 1))
      product = np.linalg.multi_dot(
        [np.eye(2**d), *topology.weights, np.eye(2**d)]
      )
      np.testing.assert_array_equal(product, 1 / 2**d)
      self.assertEqual(topology.spectral_gap(), 1)


class NeighboursTest(parameterized.TestCase):
  def test_directed_ring_hears_the_one_before(self):
    topology = graphs.ring(5, directed=True)
    self.assertEqual(
      [_neighbours(topology, i) for i in range(5)], [[4], [0], [1], [2], [3]]
    )

  def test_chain_is_a_grid_of_one_row_or_column(self):
    for n in NUMBERS:
      for sides in (1, n), (n, 1):
        np.testing.assert_array_equal(
          graphs.grid(*sides).weights, graphs.chain(n).weights
        )

  def test_grid_has_no_neighbours_beyond_its_border(self):
    topology = graphs.grid(3, 4)
    self.assertEqual(_neighbours(topology, 0), [1, 4])
    self.assertEqual(_neighbours(topology, 3), [2, 7])
    self.assertEqual(_neighbours(topology, 4), [0, 5, 8])
    self.assertEqual(_neighbours(topology, 5), [1, 4, 6, 9])
    np.testing.assert_allclose(topology.weights[0, 0, [1, 4]], 1 / 4)
    np.testing.assert_allclose(topology.weights[0, 5, [1, 4]], 1 / 5)

  def test_binary_tree_has_a_parent_and_two_children(self):
    topology = graphs.binary_tree(10)
    self.assertEqual(_neighbours(topology, 0), [1, 2])
    self.assertEqual(_neighbours(topology, 3), [1, 7, 8])
    self.assertEqual(_neighbours(topology, 4), [1, 9])
    self.assertEqual(_neighbours(topology, 9), [4])
    for n in NUMBERS:
      graph = networkx.Graph(graphs.binary_tree(n).weights[0] > 0)
      graph.remove_edges_from(networkx.selfloop_edges(graph))
      self.assertTrue(networkx.is_tree(graph))

  def test_symmetric_exponential_reaches_half_around_the_ring(self):
    for n, offsets in (
      (7, [1, 2, 5, 6]),
      (8, [1, 2, 4, 6, 7]),
      (9, [1, 2, 4, 5, 7, 8]),
      (17, [1, 2, 4, 8, 9, 13, 15, 16]),
    ):
      topology = graphs.exponential(n, symmetric=True)
      self.assertEqual(_neighbours(topology, 0), offsets)

  def test_symmetric_one_peer_partners_differ_in_one_bit(self):
    topology = graphs.one_peer_exponential(6, symmetric=True)
    partners = [topology.permutations(t)[0][0].tolist() for t in range(3)]
    self.assertEqual(
      partners, [[1, 0, 3, 2, 5, 4], [2, 3, 0, 1, 4, 5], [4, 5, 2, 3, 0, 1]]
    )
    np.testing.assert_array_equal(
      topology.self_weights(1), [0.5, 0.5, 0.5, 0.5, 1, 1]
    )

  def test_davis_social_links_women_to_the_events_they_attended(self):
    links = graphs.davis_social().weights[0] > 0
    np.testing.assert_array_equal(links[:18, :18], np.eye(18))
    np.testing.assert_array_equal(links[18:, 18:], np.eye(14))
    self.assertEqual(links[:18, 18:].sum(), 89)
    attended = links[18:, :18].sum(axis=1)
    self.assertEqual(
      attended.tolist(), [3, 3, 6, 4, 8, 8, 10, 14, 12, 5, 4, 6, 3, 3]
    )


if __name__ == '__main__':
  absltest.main()
