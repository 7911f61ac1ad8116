"""The named graphs, for every number of workers from 1 to 64."""

import networkx
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

from decopt import graphs
from decopt import weights

NUMBERS = range(1, 65)


def _tori(workers):
  return [
    graphs.torus(rows, workers // rows)
    for rows in range(1, workers + 1)
    if workers % rows == 0
  ]


def _general_graphs(workers):
  """A path, a random graph that may be in pieces, a clique with a tail."""
  return [
    weights.metropolis(networkx.path_graph(workers)),
    weights.metropolis(networkx.gnp_random_graph(workers, 0.1, seed=workers)),
    weights.metropolis(
      networkx.compose(
        networkx.path_graph(workers), networkx.complete_graph(workers // 2)
      )
    ),
  ]


def _hypercubes(workers):
  return [graphs.hypercube(workers)] if workers.bit_count() == 1 else []


# Name, graphs for a number of workers, symmetric, surely connected.
FAMILIES = (
  ('ring', lambda n: [graphs.ring(n)], True, True),
  ('complete', lambda n: [graphs.complete(n)], True, True),
  ('star', lambda n: [graphs.star(n)], True, True),
  ('torus', _tori, True, True),
  ('hypercube', _hypercubes, True, True),
  ('exponential', lambda n: [graphs.exponential(n)], False, True),
  ('one_peer', lambda n: [graphs.one_peer_exponential(n)], False, True),
  ('metropolis', _general_graphs, True, False),
)


class EveryGraphTest(parameterized.TestCase):
  @parameterized.named_parameters(*FAMILIES)
  def test_weights_keep_their_promises(self, family, symmetric, connected):
    for n in NUMBERS:
      for topology in family(n):
        weights = topology.weights
        self.assertGreaterEqual(weights.min(), 0, topology)
        np.testing.assert_allclose(weights.sum(axis=2), 1, rtol=0, atol=1e-12)
        np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=0, atol=1e-12)
        self.assertTrue(topology.is_doubly_stochastic(), topology)
        self.assertGreaterEqual(topology.workers, n)
        if symmetric:
          np.testing.assert_array_equal(weights, weights.swapaxes(1, 2))
          self.assertTrue(topology.is_symmetric(), topology)
        if connected:
          self.assertTrue(topology.is_connected(), topology)
          self.assertGreater(topology.spectral_gap(), 1e-4, topology)

  @parameterized.named_parameters(*FAMILIES)
  def test_permutations_recombine_to_the_weights(self, family, *_):
    for n in NUMBERS:
      for topology in family(n):
        for t in range(topology.period):
          self._check_round(topology, t)

  def _check_round(self, topology, t):
    workers = np.arange(topology.workers)
    links = (topology.weights[t] > 0) & (workers[:, None] != workers)
    degree = max(links.sum(axis=0).max(), links.sum(axis=1).max())
    total = np.diag(topology.self_weights(t))
    messages = np.zeros_like(links, dtype=int)
    permutations = topology.permutations(t)
    self.assertLen(permutations, degree)
    for sources, heard in permutations:
      np.testing.assert_array_equal(np.sort(sources), workers)
      np.testing.assert_array_equal(heard[sources == workers], 0)
      total[workers, sources] += heard
      messages[workers, sources] += heard > 0
    np.testing.assert_array_equal(messages, links)
    np.testing.assert_array_equal(total, topology.weights[t])

  @parameterized.named_parameters(*FAMILIES)
  def test_one_worker_keeps_its_value(self, family, *_):
    for topology in family(1):
      np.testing.assert_array_equal(topology.weights, 1)
      self.assertEqual((topology.degree, topology.spectral_gap()), (0, 1))
      self.assertEmpty(topology.permutations(0))


class ClosedFormTest(parameterized.TestCase):
  """Spectral gaps against their formulas."""

  def test_ring_eigenvalues_are_cosines(self):
    for n in NUMBERS[2:]:
      spectrum = 1 / 3 + 2 / 3 * np.cos(2 * np.pi * np.arange(n) / n)
      measured = np.linalg.eigvalsh(graphs.ring(n).weights[0])
      np.testing.assert_allclose(measured, np.sort(spectrum), atol=1e-13)
      gap = 1 - np.abs(spectrum[1:]).max()
      self.assertAlmostEqual(graphs.ring(n).spectral_gap(), gap, 12)
      self.assertAlmostEqual(gap, 2 / 3 * (1 - np.cos(2 * np.pi / n)), 12)

  def test_complete_averages_at_once(self):
    for n in NUMBERS:
      np.testing.assert_allclose(graphs.complete(n).weights, 1 / n, rtol=1e-15)
      self.assertEqual(graphs.complete(n).spectral_gap(), 1)

  def test_star_gap_is_one_over_workers(self):
    for n in NUMBERS[1:]:
      self.assertAlmostEqual(
        graphs.star(n).spectral_gap(), 1 / n + (n == 2) / 2
      )

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

  def test_one_peer_exponential_averages_exactly_in_one_period(self):
    for d in range(7):
      topology = graphs.one_peer_exponential(2**d)
      self.assertEqual(topology.period, max(d, 1))
      product = np.linalg.multi_dot(
        [np.eye(2**d), *topology.weights, np.eye(2**d)]
      )
      np.testing.assert_array_equal(product, 1 / 2**d)
      self.assertEqual(topology.spectral_gap(), 1)


class PublishedBugTest(parameterized.TestCase):
  """Defects of other systems, each with the check that would have caught it."""

  def test_b1_torus_with_a_side_of_two_sums_to_one(self):
    # A / 5 with a double edge counted once gives rows that sum to 0.6 or 0.8.
    for sides in ((2, 2), (2, 3), (2, 4), (2, 5), (1, 2), (1, 1)):
      weights = graphs.torus(*sides).weights
      np.testing.assert_allclose(weights.sum(axis=2), 1, rtol=0, atol=1e-15)

  def test_b8_one_peer_offsets_are_the_powers_of_two_in_each_period(self):
    # 2 ** (i % d) written as 2 ** i % d gives other offsets after a while.
    for n in NUMBERS[1:]:
      topology = graphs.one_peer_exponential(n)
      for first in (0, topology.period, 7 * topology.period):
        offsets = []
        for t in range(first, first + topology.period):
          [(sources, _)] = topology.permutations(t)
          [offset] = set(((np.arange(n) - sources) % n).tolist())
          offsets.append(offset)
        powers = [1 << t for t in range(topology.period)]
        self.assertEqual(offsets, [power % n for power in powers])

  def test_b17_powers_are_found_in_integers(self):
    # log(243, 3) and log(1000, 10) are not the integers they should be.
    for d in range(11):
      self.assertEqual(graphs.hypercube(1 << d).degree, d)
      self.assertEqual(graphs.exponential(1 << d).degree, d)
      self.assertEqual(graphs.exponential((1 << d) + 1).degree, d + 1)


class BadSizeTest(parameterized.TestCase):
  def test_hypercube_names_the_sizes_that_work(self):
    for n in NUMBERS:
      if n.bit_count() > 1:
        below, above = 1 << n.bit_length() - 1, 1 << n.bit_length()
        advice = rf'got {n}\. .*\({below}\) .*\({above}\).*exponential\({n}\)'
        with self.assertRaisesRegex(ValueError, advice):
          graphs.hypercube(n)

  @parameterized.named_parameters(
    ('ring', graphs.ring),
    ('complete', graphs.complete),
    ('star', graphs.star),
    ('hypercube', graphs.hypercube),
    ('exponential', graphs.exponential),
    ('one_peer_exponential', graphs.one_peer_exponential),
    ('torus', lambda rows: graphs.torus(rows, 2)),
  )
  def test_sizes_are_positive_integers(self, graph):
    for size in (0, -3):
      with self.assertRaisesRegex(ValueError, f'1 or more .*got {size}'):
        graph(size)
    with self.assertRaisesRegex(TypeError, r'integer .*got 4\.0'):
      graph(4.0)
    self.assertEqual(graph(np.int64(4)), graph(4))


if __name__ == '__main__':
  absltest.main()
