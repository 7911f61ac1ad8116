"""Weights that agree fastest: against searches, and optima that are known."""

import functools
import sys
from unittest import mock

import cvxpy
import networkx
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from decopt.weights import optimal

GRAPHS = {
  'path': networkx.path_graph(7),
  'ring': networkx.cycle_graph(9),
  'star': networkx.star_graph(5),
  'complete': networkx.complete_graph(6),
  'grid': networkx.convert_node_labels_to_integers(
    networkx.grid_2d_graph(3, 4)
  ),
  'bipartite': networkx.complete_bipartite_graph(2, 5),
  'lollipop': networkx.lollipop_graph(5, 3),
  'barbell': networkx.barbell_graph(4, 1),
  'random': networkx.gnp_random_graph(10, 0.4, seed=3),
}


def _links(graph):
  return networkx.to_numpy_array(graph, sorted(graph), weight=None) > 0


def _factor(matrix):
  """By what a round may still multiply disagreement: the norm of W - J."""
  return np.linalg.norm(matrix - 1 / len(matrix), 2)


def _constant(graph, a):
  return np.eye(len(graph)) - a * networkx.laplacian_matrix(graph).toarray()


def _search(graph, bound):
  """The smallest factor of a constant weight up to a bound, by golden cuts."""
  low, high = 0.0, bound
  for _ in range(100):
    third = (high - low) / 3
    left, right = low + third, high - third
    if _factor(_constant(graph, left)) < _factor(_constant(graph, right)):
      high = right
    else:
      low = left
  return _factor(_constant(graph, low))


class BestConstantTest(parameterized.TestCase):
  @parameterized.named_parameters(GRAPHS.items())
  def test_no_constant_weight_is_faster(self, graph):
    largest = max(degree for _, degree in graph.degree)
    topology = decopt.best_constant(graph)
    self.assertAlmostEqual(
      _factor(topology.weights[0]), _search(graph, 1 / largest), 9
    )

  @parameterized.named_parameters(
    ('complete', False), ('ring', False), ('star', True), ('lollipop', True)
  )
  def test_the_busiest_worker_keeps_nothing_where_it_would_owe(self, owes):
    graph = GRAPHS[self.id().rsplit('_', 1)[1]]
    kept = decopt.best_constant(graph).self_weights(0).min()
    largest = max(degree for _, degree in graph.degree)
    free = _search(graph, 1.0)
    if owes:
      self.assertAlmostEqual(kept, 0, 15)
      self.assertLess(free, _search(graph, 1 / largest) - 1e-3)
    else:
      self.assertGreater(kept, 1e-3)
      self.assertAlmostEqual(free, _search(graph, 1 / largest), 9)

  def test_small_stars_tell_where_it_starts_to_owe(self):
    kept = [
      decopt.best_constant(decopt.star(n)).self_weights(0)[0] for n in (2, 3, 4)
    ]
    np.testing.assert_allclose(kept, [1 / 2, 0, 0], atol=1e-15)
    # With 3 workers 2 / (3 + 1) is 1 / 2 exactly: both cases at once.

  def test_rounding_leaves_no_negative_weight_on_any_star(self):
    for n in range(2, 50):  # 21 and 22 would have one, of -2e-16
      topology = decopt.best_constant(decopt.star(n))
      self.assertGreaterEqual(topology.weights.min(), 0)

  def test_rounds_in_parts_agree_within_the_parts_at_once(self):
    pairs = networkx.Graph([(0, 1), (2, 3)])
    pairs.add_node(4)
    topology = decopt.best_constant(pairs)
    expected = np.kron(np.diag([1, 1, 0]), np.full((2, 2), 0.5))[:5, :5]
    expected[4, 4] = 1
    np.testing.assert_allclose(topology.weights[0], expected, atol=1e-12)

  def test_workers_without_links_keep_what_they_have(self):
    topology = decopt.best_constant(networkx.empty_graph(3))
    np.testing.assert_array_equal(topology.weights[0], np.eye(3))


class FastestMixingTest(parameterized.TestCase):
  @parameterized.named_parameters(GRAPHS.items())
  def test_is_never_slower_than_a_rule(self, graph):
    fastest = _factor(decopt.fastest_mixing(graph).weights[0])
    for rule in (
      decopt.metropolis,
      decopt.maximum_degree,
      decopt.best_constant,
    ):
      self.assertLessEqual(fastest, _factor(rule(graph).weights[0]) + 1e-6)

  @parameterized.named_parameters(GRAPHS.items())
  def test_is_a_local_optimum(self, graph):
    # The problem is convex: what no small step improves is the optimum.
    topology = decopt.fastest_mixing(graph)
    fastest = _factor(topology.weights[0])
    links = np.triu(_links(graph))
    rng = np.random.default_rng(0)
    for _ in range(200):
      step = 0.01 * rng.normal(size=links.shape) * links
      step = step + step.T
      other = topology.weights[0] + step - np.diag(step.sum(axis=1))
      if (other >= 0).all():
        self.assertGreaterEqual(_factor(other), fastest - 1e-6)

  @parameterized.named_parameters(GRAPHS.items())
  def test_weights_are_clean(self, graph):
    topology = decopt.fastest_mixing(graph)
    matrix = topology.weights[0]
    np.testing.assert_array_equal(matrix, matrix.T)
    self.assertGreaterEqual(matrix.min(), 0)
    np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=0, atol=1e-12)
    self.assertFalse((topology.links[0] & ~_links(graph)).any())

  @parameterized.named_parameters(
    ('path_of_3', networkx.path_graph(3), 1 / 2),
    ('path_of_6', networkx.path_graph(6), np.cos(np.pi / 6)),
    ('star', networkx.star_graph(4), 3 / 4),
    ('complete', networkx.complete_graph(5), 0),
    ('ring_of_4', networkx.cycle_graph(4), 1 / 3),
    ('pair', networkx.path_graph(2), 0),
  )
  def test_equals_the_known_optimum(self, graph, factor):
    topology = decopt.fastest_mixing(graph)
    self.assertAlmostEqual(_factor(topology.weights[0]), factor, 6)

  def test_is_strictly_faster_where_links_are_not_alike(self):
    graph = GRAPHS['barbell']
    fastest = _factor(decopt.fastest_mixing(graph).weights[0])
    self.assertLess(
      fastest, _factor(decopt.metropolis(graph).weights[0]) - 0.01
    )
    constant = decopt.best_constant(graph).weights[0]
    self.assertLess(fastest, _factor(constant) - 0.01)

  def test_each_part_of_each_round_is_as_fast_as_it_can_be(self):
    graph = networkx.disjoint_union(networkx.path_graph(3), GRAPHS['star'])
    graph.add_node(9)
    matrix = decopt.fastest_mixing(graph).weights[0]
    self.assertAlmostEqual(_factor(matrix[:3, :3]), 1 / 2, 6)
    self.assertAlmostEqual(_factor(matrix[3:9, 3:9]), 4 / 5, 6)
    self.assertEqual(matrix[9, 9], 1)
    pairs = decopt.fastest_mixing(decopt.one_peer_exponential(2))
    np.testing.assert_allclose(pairs.weights, 0.5, atol=1e-6)

  def test_links_that_are_not_needed_get_no_weight(self):
    graph = networkx.gnp_random_graph(30, 0.3, seed=1)
    topology = decopt.fastest_mixing(graph)
    dropped = graph.number_of_edges() - int(topology.links.sum()) // 2
    self.assertBetween(dropped, 20, 26)
    self.assertGreater(topology.weights[0][topology.links[0]].min(), 1e-6)

  def test_sums_above_one_are_brought_down_on_both_sides_alike(self):
    ends = np.array([[0, 1], [0, 2], [1, 2]])
    cleaned = optimal._cleaned(3, ends, np.array([0.7, 0.5, 1e-7]))
    np.testing.assert_array_equal(cleaned, cleaned.T)
    self.assertLessEqual(cleaned.sum(axis=1).max(), 1)
    np.testing.assert_allclose(cleaned[0], [0, 0.7 / 1.2, 0.5 / 1.2])
    self.assertEqual(cleaned[1, 2], 0)

  def test_a_solver_that_stops_too_early_is_no_solution(self):
    solve = cvxpy.Problem.solve
    stopped = functools.partialmethod(solve, max_iter=2)
    with (
      mock.patch('cvxpy.Problem.solve', stopped),
      self.assertRaisesRegex(
        RuntimeError, '6 workers and 5 links.*decopt.best_constant'
      ),
    ):
      decopt.fastest_mixing(networkx.path_graph(6))

  def test_an_error_of_the_solver_is_passed_on_with_advice(self):
    broken = cvxpy.error.SolverError('no such luck')
    with (
      mock.patch('cvxpy.Problem.solve', side_effect=broken),
      self.assertRaisesRegex(
        RuntimeError, 'error: no such luck. Use decopt.best_constant'
      ),
    ):
      decopt.fastest_mixing(networkx.path_graph(6))

  def test_says_that_the_solver_failed(self):
    with (
      mock.patch('cvxpy.Problem.solve'),
      self.assertRaisesRegex(RuntimeError, '3 workers and 2 links.*best_const'),
    ):
      decopt.fastest_mixing(networkx.path_graph(3))

  def test_says_what_to_install(self):
    with (
      mock.patch.dict(sys.modules, {'cvxpy': None}),
      self.assertRaisesRegex(
        ImportError, r"'decopt-jax\[solver\]'.*best_const"
      ),
    ):
      decopt.fastest_mixing(networkx.path_graph(3))


if __name__ == '__main__':
  absltest.main()
