"""Rules for weights that need to know degrees only."""

import networkx
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from decopt import weights

UNDIRECTED = (weights.metropolis, weights.maximum_degree)
DIRECTED = (weights.row_stochastic, weights.column_stochastic)
RULES = tuple(
  (rule.__name__, rule)
  for rule in (*UNDIRECTED, weights.best_constant, weights.fastest_mixing)
)
#: Worker 0 sends to 1 and 2, 1 to 2, 2 to 0; 3 to 0, and nobody to 3.
DIGRAPH = networkx.DiGraph([(0, 1), (0, 2), (1, 2), (2, 0), (3, 0)])


def _graphs():
  for seed in range(20):
    yield networkx.gnp_random_graph(3 + seed % 7, 0.4, seed=seed)
  yield networkx.barbell_graph(4, 2)
  yield networkx.karate_club_graph()
  yield networkx.empty_graph(1)


def _digraphs():
  for seed in range(20):
    yield networkx.gnp_random_graph(3 + seed % 7, 0.3, seed=seed, directed=True)


class SharedTest(parameterized.TestCase):
  @parameterized.named_parameters(*RULES[:3])
  def test_weights_are_symmetric_and_doubly_stochastic_on_the_links(self, rule):
    for graph in _graphs():
      topology = rule(graph)
      self.assertTrue(topology.is_doubly_stochastic())
      np.testing.assert_array_equal(
        topology.weights[0], topology.weights[0].T, str(graph)
      )
      links = networkx.to_numpy_array(graph, weight=None) > 0
      np.testing.assert_array_equal(topology.links[0], links)

  @parameterized.named_parameters(*RULES)
  def test_a_topology_gets_new_weights_in_each_round(self, rule):
    rounds = [networkx.path_graph(5), networkx.star_graph(4)]
    links = [networkx.to_numpy_array(graph) for graph in rounds]
    old = [np.eye(5) * 0.9 + 0.1 * a / a.sum(1) for a in links]
    old = [matrix / matrix.sum(axis=1, keepdims=True) for matrix in old]
    topology = rule(decopt.Topology(np.stack(old), 'two'))
    self.assertEqual(topology.name, f'two, {rule.__name__.replace("_", " ")}')
    self.assertEqual(topology.period, 2)
    for matrix, graph in zip(topology.weights, rounds, strict=True):
      np.testing.assert_allclose(matrix, rule(graph).weights[0], atol=1e-9)

  @parameterized.named_parameters(*RULES)
  def test_takes_the_name_of_the_graph_or_of_the_rule(self, rule):
    unnamed = rule(networkx.path_graph(3))
    self.assertEqual(unnamed.name, rule.__name__.replace('_', ' '))
    named = rule(networkx.petersen_graph())
    self.assertEqual(named.name, 'Petersen Graph')

  @parameterized.named_parameters(*RULES)
  def test_refuses_directed_graphs_with_advice(self, rule):
    with self.assertRaisesRegex(
      TypeError, rf'{rule.__name__} needs an undir.*DiGraph.*to_undirected\(\)'
    ):
      rule(networkx.DiGraph([(0, 1)]))

  @parameterized.named_parameters(*RULES)
  def test_refuses_one_way_links_of_a_topology_with_advice(self, rule):
    topology = decopt.Topology(
      np.stack([np.eye(4), decopt.row_stochastic(DIGRAPH).weights[0]]), 'mine'
    )
    with self.assertRaisesRegex(
      ValueError,
      "in round 1 of topology 'mine' worker 0 hears worker 3 and is not.*"
      rf'{rule.__name__}\(decopt.symmetrized\(topology\)\)',
    ):
      rule(topology)
    self.assertEqual(rule(decopt.symmetrized(topology)).period, 2)

  @parameterized.named_parameters(
    *RULES, *((rule.__name__, rule) for rule in DIRECTED)
  )
  def test_refuses_what_is_no_graph_with_advice(self, rule):
    with self.assertRaisesRegex(TypeError, r'ndarray.*from_numpy_array'):
      rule(np.ones((3, 3)))
    with self.assertRaisesRegex(ValueError, 'without nodes'):
      rule(networkx.Graph())


class MetropolisTest(parameterized.TestCase):
  def test_worker_i_is_node_i_however_the_graph_was_built(self):
    graph = networkx.Graph([(3, 1), (0, 3), (2, 0)])
    matrix = weights.metropolis(graph).weights[0]
    links = {(i, j) for i, j in np.argwhere(matrix).tolist() if i < j}
    self.assertEqual(links, {(1, 3), (0, 3), (0, 2)})

  def test_nodes_of_several_kinds_keep_their_order(self):
    graph = networkx.Graph([('server', 1), (1, (0, 0))])
    matrix = weights.metropolis(graph).weights[0]
    np.testing.assert_allclose(matrix.diagonal(), [2 / 3, 1 / 3, 2 / 3])

  def test_attributes_double_links_and_loops_do_not_count(self):
    plain = networkx.path_graph(4)
    rich = networkx.MultiGraph(list(plain.edges) * 2 + [(2, 2)])
    for *_, attributes in rich.edges(data=True):
      attributes['weight'] = 0.0
    np.testing.assert_array_equal(
      weights.metropolis(plain).weights, weights.metropolis(rich).weights
    )

  def test_a_graph_in_pieces_is_accepted_and_says_so(self):
    topology = weights.metropolis(networkx.Graph([(0, 1), (2, 3)]))
    self.assertFalse(topology.is_connected())
    self.assertAlmostEqual(topology.spectral_gap(), 0)

  def test_a_link_counts_the_larger_degree_of_its_ends(self):
    for graph in _graphs():
      matrix = weights.metropolis(graph).weights[0]
      for u, v in graph.edges:
        larger = max(graph.degree(u), graph.degree(v))
        self.assertEqual(matrix[u, v], 1 / (1 + larger))

  def test_b19_irregular_graphs_still_preserve_the_mean(self):
    # Declared regular, a path with weights 1 / neighbours weighs its middle
    # more: the stationary v of v W = v is not uniform.
    for graph in (
      networkx.path_graph(7),
      networkx.barbell_graph(4, 2),
      networkx.karate_club_graph(),
    ):
      topology = weights.metropolis(graph)
      values, vectors = np.linalg.eig(topology.weights[0].T)
      stationary = vectors[:, np.argmax(values.real)].real
      np.testing.assert_allclose(
        stationary / stationary.sum(), 1 / len(graph), rtol=1e-10
      )


class MaximumDegreeTest(parameterized.TestCase):
  def test_every_link_has_the_weight_of_the_busiest_worker(self):
    for graph in _graphs():
      matrix = weights.maximum_degree(graph).weights[0]
      largest = max(degree for _, degree in graph.degree)
      for u, v in graph.edges:
        self.assertEqual(matrix[u, v], 1 / (1 + largest))

  def test_is_metropolis_on_regular_graphs_and_slower_on_a_path_with_a_hub(
    self,
  ):
    regular = networkx.petersen_graph()
    np.testing.assert_allclose(
      weights.maximum_degree(regular).weights,
      weights.metropolis(regular).weights,
      rtol=1e-12,
    )
    hub = networkx.lollipop_graph(6, 6)
    self.assertLess(
      weights.maximum_degree(hub).spectral_gap(),
      weights.metropolis(hub).spectral_gap(),
    )


class DirectedTest(parameterized.TestCase):
  def test_an_edge_lets_its_start_send_to_its_end(self):
    heard = weights.row_stochastic(DIGRAPH).weights[0]
    np.testing.assert_allclose(heard[0], [1 / 3, 0, 1 / 3, 1 / 3])
    np.testing.assert_allclose(heard[1], [1 / 2, 1 / 2, 0, 0])
    sent = weights.column_stochastic(DIGRAPH).weights[0]
    np.testing.assert_allclose(sent[:, 0], [1 / 3, 1 / 3, 1 / 3, 0])
    np.testing.assert_allclose(sent[:, 3], [1 / 2, 0, 0, 1 / 2])

  def test_rows_or_columns_are_uniform_over_links(self):
    for graph in _digraphs():
      rows, columns = (rule(graph) for rule in DIRECTED)
      self.assertTrue(rows.is_row_stochastic())
      self.assertTrue(columns.is_column_stochastic())
      for u, v in graph.edges:
        heard, sent = graph.in_degree(v), graph.out_degree(u)
        self.assertAlmostEqual(rows.weights[0, v, u], 1 / (1 + heard), 15)
        self.assertAlmostEqual(columns.weights[0, v, u], 1 / (1 + sent), 15)
      np.testing.assert_array_equal(rows.links, columns.links)
      self.assertEqual(rows.links.sum(), graph.number_of_edges())

  @parameterized.named_parameters((rule.__name__, rule) for rule in DIRECTED)
  def test_undirected_graphs_and_topologies_are_taken_too(self, rule):
    path = rule(networkx.path_graph(4))
    np.testing.assert_array_equal(path.links, path.links.swapaxes(1, 2))
    again = rule(decopt.one_peer_exponential(8))
    self.assertEqual(again.period, 3)
    self.assertIn('one_peer_exponential, ', again.name)
    np.testing.assert_array_equal(
      again.weights, decopt.one_peer_exponential(8).weights
    )

  def test_b17_columns_of_an_irregular_digraph_sum_to_one(self):
    # Published recipes divide what is sent by what is heard.
    graph = networkx.DiGraph([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])
    matrix = weights.column_stochastic(graph).weights[0]
    np.testing.assert_allclose(matrix.sum(axis=0), 1, rtol=1e-15)
    self.assertGreater(np.ptp(matrix.sum(axis=1)), 0.1)


if __name__ == '__main__':
  absltest.main()
