"""Rules that give weights to a graph."""

import networkx
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

from decopt import weights


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

  def test_takes_the_name_of_the_graph(self):
    self.assertEqual(
      weights.metropolis(networkx.path_graph(3)).name, 'metropolis'
    )
    named = weights.metropolis(networkx.petersen_graph())
    self.assertEqual(named.name, 'Petersen Graph')

  def test_refuses_directed_graphs_with_advice(self):
    with self.assertRaisesRegex(TypeError, r'DiGraph.*to_undirected\(\)'):
      weights.metropolis(networkx.DiGraph([(0, 1)]))

  def test_refuses_a_matrix_with_advice(self):
    with self.assertRaisesRegex(TypeError, r'ndarray.*from_numpy_array'):
      weights.metropolis(np.ones((3, 3)))

  def test_refuses_an_empty_graph(self):
    with self.assertRaisesRegex(ValueError, 'without nodes'):
      weights.metropolis(networkx.Graph())

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


if __name__ == '__main__':
  absltest.main()
