"""Topologies made from another: lazier, symmetric, or of a single round."""

import networkx
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

import decopt

DIGRAPH = networkx.DiGraph([(0, 1), (0, 2), (1, 2), (2, 0), (3, 0)])
TOPOLOGIES = {
  'symmetric': decopt.ring(6),
  'periodic': decopt.one_peer_exponential(6),
  'rows': decopt.row_stochastic(DIGRAPH),
  'columns': decopt.column_stochastic(DIGRAPH),
  'alone': decopt.ring(1),
}


def _sums(topology):
  return topology.is_row_stochastic(), topology.is_column_stochastic()


class LazyTest(parameterized.TestCase):
  @parameterized.named_parameters(TOPOLOGIES.items())
  def test_mixes_every_round_with_the_identity(self, topology):
    for keep in (0, 0.25, 0.9):
      lazy = decopt.lazy(topology, keep)
      expected = keep * np.eye(topology.workers) + (1 - keep) * topology.weights
      np.testing.assert_allclose(lazy.weights, expected, rtol=1e-15)
      self.assertEqual(_sums(lazy), _sums(topology))
      self.assertEqual(lazy.is_symmetric(), topology.is_symmetric())
    self.assertEqual(lazy.name, f'{topology.name}, lazy')

  def test_half_lazy_weights_have_no_negative_eigenvalue(self):
    topology = decopt.metropolis(networkx.complete_bipartite_graph(3, 5))
    self.assertLess(np.linalg.eigvalsh(topology.weights[0]).min(), -0.2)
    halved = decopt.lazy(topology).weights[0]
    self.assertGreaterEqual(np.linalg.eigvalsh(halved).min(), 0)

  @parameterized.named_parameters(
    (function.__name__, function)
    for function in (
      decopt.lazy,
      decopt.merged,
      decopt.symmetrized,
      decopt.joined,
      lambda graph: decopt.save_topology(graph, 'x.npy'),
    )
  )
  def test_graphs_without_weights_are_refused_with_advice(self, function):
    with self.assertRaisesRegex(
      TypeError, r'needs a decopt.Topology.*Graph.*decopt.metropolis\(graph\)'
    ):
      function(networkx.path_graph(3))

  @parameterized.parameters('half', None, ([0.5],), 1j)
  def test_refuses_what_is_no_number(self, keep):
    with self.assertRaisesRegex(TypeError, 'lazy needs a number as keep'):
      decopt.lazy(decopt.ring(4), keep)

  @parameterized.parameters(-0.1, 1, 1.5, float('nan'))
  def test_refuses_to_exchange_nothing(self, keep):
    with self.assertRaisesRegex(ValueError, f'less than 1, but got {keep}'):
      decopt.lazy(decopt.ring(4), keep)


class MergedTest(parameterized.TestCase):
  @parameterized.named_parameters(TOPOLOGIES.items())
  def test_is_one_round_with_all_links_and_the_same_sums(self, topology):
    merged = decopt.merged(topology)
    self.assertEqual(merged.period, 1)
    np.testing.assert_array_equal(merged.links[0], topology.links.any(axis=0))
    np.testing.assert_allclose(merged.weights[0], topology.weights.mean(axis=0))
    self.assertEqual(_sums(merged), _sums(topology))
    self.assertEqual(merged.is_connected(), topology.is_connected())
    self.assertEqual(merged.name, f'{topology.name}, merged')


class SymmetrizedTest(parameterized.TestCase):
  @parameterized.named_parameters(TOPOLOGIES.items())
  def test_is_symmetric_and_doubly_stochastic_on_links_both_ways(
    self, topology
  ):
    result = decopt.symmetrized(topology)
    self.assertTrue(result.is_symmetric())
    self.assertTrue(result.is_doubly_stochastic())
    both = topology.links | topology.links.swapaxes(1, 2)
    np.testing.assert_array_equal(result.links, both)
    self.assertEqual(result.name, f'{topology.name}, symmetrized')

  def test_doubly_stochastic_weights_become_the_nearest_symmetric_ones(self):
    topology = decopt.exponential(6)
    result = decopt.symmetrized(topology).weights
    rng = np.random.default_rng(0)
    for scale in (1e-3, 0.1, 1):
      other = result + scale * rng.normal(size=result.shape)
      other = (other + other.swapaxes(1, 2)) / 2
      self.assertLess(
        np.linalg.norm(result - topology.weights),
        np.linalg.norm(other - topology.weights),
      )

  def test_others_get_metropolis_weights(self):
    result = decopt.symmetrized(decopt.row_stochastic(DIGRAPH))
    expected = decopt.metropolis(DIGRAPH.to_undirected())
    np.testing.assert_array_equal(result.weights, expected.weights)

  def test_symmetric_weights_stay_as_they_are(self):
    np.testing.assert_array_equal(
      decopt.symmetrized(decopt.star(5)).weights, decopt.star(5).weights
    )


if __name__ == '__main__':
  absltest.main()
