"""The fewest links that connect a graph in pieces."""

import itertools

import networkx
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

import decopt


def _needed(graph: networkx.DiGraph) -> int:
  """Fewest one-way links that connect a graph strongly, tried one by one."""
  missing = list(networkx.complement(graph).edges)
  for count in range(len(graph) + 1):
    for added in itertools.combinations(missing, count):
      larger = graph.copy()
      larger.add_edges_from(added)
      if networkx.is_strongly_connected(larger):
        return count
  raise AssertionError('a circle through all would have done')


def _bound(graph: networkx.DiGraph) -> int:
  """Sources or sinks of the graph of parts, whichever are more."""
  parts = networkx.condensation(graph)
  if len(parts) == 1:
    return 0
  sources = sum(1 for part in parts if not parts.in_degree(part))
  sinks = sum(1 for part in parts if not parts.out_degree(part))
  return max(sources, sinks)


def _added(before, after):
  return int((after.links & ~before.links).sum())


def _sums(topology):
  return topology.is_row_stochastic(), topology.is_column_stochastic()


class UndirectedTest(parameterized.TestCase):
  def test_parts_are_connected_by_one_link_less_than_there_are_parts(self):
    for seed in range(40):
      graph = networkx.gnp_random_graph(2 + seed % 15, 0.1, seed=seed)
      before = decopt.metropolis(graph)
      after = decopt.joined(before)
      parts = networkx.number_connected_components(graph)
      self.assertTrue(after.is_connected())
      self.assertEqual(_added(before, after), 2 * (parts - 1))
      self.assertTrue((after.links | ~before.links).all())
      self.assertTrue(after.is_symmetric())
      self.assertTrue(after.is_doubly_stochastic())

  def test_the_first_round_gets_metropolis_weights_and_others_stay(self):
    pairs = networkx.Graph([(0, 1), (2, 3), (4, 5)])
    crossed = networkx.Graph([(0, 2), (1, 3), (4, 5)])
    crossed.add_nodes_from(sorted(pairs))
    rounds = [decopt.lazy(decopt.metropolis(g), 0.3) for g in (pairs, crossed)]
    before = decopt.Topology(np.concatenate([t.weights for t in rounds]), 'two')
    after = decopt.joined(before)
    self.assertEqual(after.name, 'two, joined')
    self.assertEqual(_added(before, after), 2)
    np.testing.assert_array_equal(after.weights[1], before.weights[1])
    first = decopt.Topology(after.weights[0], 'first')
    np.testing.assert_allclose(
      decopt.metropolis(first).weights, first.weights, atol=1e-15
    )

  def test_no_worker_gets_more_than_two_links_more(self):
    before = decopt.metropolis(
      networkx.disjoint_union_all([networkx.star_graph(4) for _ in range(5)])
    )
    after = decopt.joined(before)
    self.assertEqual(after.degree, before.degree)  # leaves are joined, not hubs
    alone = decopt.metropolis(networkx.empty_graph(6))
    self.assertEqual(decopt.joined(alone).degree, 2)

  def test_a_part_is_left_by_another_worker_than_it_is_entered(self):
    pairs = decopt.metropolis(networkx.Graph([(0, 1), (2, 3), (4, 5)]))
    self.assertEqual(decopt.joined(pairs).degree, 2)

  def test_what_is_connected_is_returned(self):
    for topology in (decopt.ring(5), decopt.one_peer_exponential(6)):
      self.assertIs(decopt.joined(topology), topology)


class DirectedTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('rows', decopt.row_stochastic, 0), ('columns', decopt.column_stochastic, 1)
  )
  def test_added_links_are_as_few_as_the_theorem_says(self, rule, kept):
    for seed in range(200):
      graph = networkx.gnp_random_graph(
        2 + seed % 12, 0.02 + 0.03 * (seed % 5), seed=seed, directed=True
      )
      before = rule(graph)
      if (before.links == before.links.swapaxes(1, 2)).all():
        continue  # without one-way links these go both ways
      after = decopt.joined(before)
      self.assertTrue(after.is_connected(), seed)
      self.assertEqual(_added(before, after), _bound(graph), seed)
      self.assertTrue((after.links | ~before.links).all())
      self.assertTrue(_sums(after)[kept])

  def test_the_theorem_is_right_on_small_graphs(self):
    for seed in range(60):
      graph = networkx.gnp_random_graph(4, 0.2, seed=seed, directed=True)
      self.assertEqual(_bound(graph), _needed(graph))

  def test_doubly_stochastic_weights_stay_so(self):
    # Two directed rings and a worker alone; a circle of three links joins them.
    matrix = np.zeros((8, 8))
    matrix[:4, :4] = decopt.ring(4, directed=True).weights[0]
    matrix[4:7, 4:7] = decopt.ring(3, directed=True).weights[0]
    matrix[7, 7] = 1
    before = decopt.Topology(matrix, 'rings')
    after = decopt.joined(before)
    self.assertTrue(after.is_connected())
    self.assertTrue(after.is_doubly_stochastic())
    self.assertEqual(_added(before, after), 3)

  def test_one_way_rounds_that_go_both_ways_together_are_joined_both_ways(self):
    there = np.kron(np.eye(2), [[0.5, 0.5], [0, 1]])
    back = np.kron(np.eye(2), [[1, 0], [0.5, 0.5]])
    before = decopt.Topology(np.stack([there, back]), 'in turns')
    after = decopt.joined(before)
    self.assertTrue(after.is_connected())
    self.assertTrue(after.is_row_stochastic())
    self.assertEqual(_added(before, after), 2)

  def test_many_parts_take_no_longer_than_one_does(self):
    graph = networkx.DiGraph([(i, i + 1) for i in range(0, 600, 2)])
    after = decopt.joined(decopt.column_stochastic(graph))
    self.assertTrue(after.is_connected())


if __name__ == '__main__':
  absltest.main()
