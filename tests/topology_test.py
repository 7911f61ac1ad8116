"""What a topology says about its weights, and which weights it refuses."""

import copy
import dataclasses
import pickle

import jax
import networkx
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

from decopt import graphs
from decopt.topology import Topology
from decopt.weights import row_stochastic

HALVES = [[0.5, 0.5], [0.5, 0.5]]
SWAP = [[0.0, 1.0], [1.0, 0.0]]


def _uniform_over_listeners(graph):
  """The recipe 1 / (neighbours + 1) for each row, right or wrong."""
  links = networkx.to_numpy_array(graph).T + np.eye(len(graph))
  return links / links.sum(axis=1, keepdims=True)


class WeightsTest(parameterized.TestCase):
  def test_one_matrix_is_a_period_of_one_round(self):
    topology = Topology(HALVES, 'pair')
    self.assertEqual(topology.weights.shape, (1, 2, 2))
    self.assertEqual((topology.workers, topology.period), (2, 1))
    self.assertEqual(topology.weights.dtype, np.float64)

  def test_weights_are_read_only_and_a_copy(self):
    weights = np.array([HALVES])
    topology = Topology(weights, 'pair')
    weights[:] = 7
    np.testing.assert_array_equal(topology.weights, [HALVES])
    with self.assertRaisesRegex(ValueError, 'read-only'):
      topology.weights[0, 0, 0] = 1
    [(sources, mixing)] = topology.permutations(0)
    for array in (sources, mixing, topology.self_weights(0)):
      with self.assertRaisesRegex(ValueError, 'read-only'):
        array[0] = 1

  def test_name_cannot_change(self):
    with self.assertRaises(dataclasses.FrozenInstanceError):
      Topology(HALVES, 'pair').name = 'couple'

  def test_rounds_repeat_after_the_period(self):
    topology = graphs.one_peer_exponential(8)
    for t in range(3):
      now, later = topology.permutations(t), topology.permutations(t + 30)
      np.testing.assert_array_equal(now[0][0], later[0][0])
      np.testing.assert_array_equal(
        topology.self_weights(t), topology.self_weights(t + 30)
      )

  def test_links_are_whom_receivers_hear_but_themselves(self):
    weights = [[0.5, 0.5, 0], [0, 1, 0], [0.25, 0.25, 0.5]]
    topology = Topology([weights, np.eye(3)], 'mine')
    expected = [[[0, 1, 0], [0, 0, 0], [1, 1, 0]], np.zeros((3, 3))]
    np.testing.assert_array_equal(topology.links, expected)
    with self.assertRaisesRegex(ValueError, 'read-only'):
      topology.links[0, 0, 0] = True

  def test_degree_counts_the_busier_direction(self):
    # All hear worker 0, who hears nobody: one to hear, three to send to.
    weights = np.eye(4) / 2
    weights[:, 0] += 0.5
    topology = Topology(weights, 'broadcast')
    self.assertEqual(topology.degree, 3)
    self.assertLen(topology.permutations(0), 3)

  def test_ring_sends_to_the_right_and_to_the_left(self):
    right, left = graphs.ring(5).permutations(0)
    np.testing.assert_array_equal(right[0], [4, 0, 1, 2, 3])
    np.testing.assert_array_equal(left[0], [1, 2, 3, 4, 0])
    np.testing.assert_array_equal(right[1], np.full(5, 1 / 3))

  def test_prints_what_one_wants_to_know(self):
    self.assertEqual(
      repr(graphs.one_peer_exponential(16)),
      "Topology('one_peer_exponential', workers=16, degree=1, period=4, "
      'spectral_gap=1)',
    )

  def test_prints_the_gap_of_a_large_one_once_it_is_known(self):
    topology = graphs.ring(1001)
    self.assertEndsWith(repr(topology), 'degree=2, period=1)')
    topology.spectral_gap()
    self.assertRegex(repr(topology), r'spectral_gap=1\.3\d+e-05\)$')


class EqualityTest(parameterized.TestCase):
  def test_equal_weights_and_names_are_equal(self):
    self.assertEqual(graphs.ring(4), graphs.ring(4))
    self.assertEqual(hash(graphs.ring(4)), hash(graphs.ring(4)))
    self.assertNotEqual(graphs.ring(4), graphs.ring(5))
    self.assertNotEqual(graphs.ring(3), graphs.complete(3))
    self.assertNotEqual(graphs.ring(3), 'ring')

  def test_zeros_have_no_sign(self):
    plus, minus = ([[1, zero], [zero, 1]] for zero in (0.0, -0.0))
    self.assertEqual(Topology(plus, 'x'), Topology(minus, 'x'))
    self.assertEqual(hash(Topology(plus, 'x')), hash(Topology(minus, 'x')))

  @parameterized.named_parameters(
    ('copy', copy.copy),
    ('deepcopy', copy.deepcopy),
    ('pickle', lambda topology: pickle.loads(pickle.dumps(topology))),
  )
  def test_copies_are_equal_and_read_only(self, make):
    topology = graphs.ring(4)
    topology.spectral_gap()
    again = make(topology)
    self.assertEqual(again, topology)
    self.assertEqual(hash(again), hash(topology))
    with self.assertRaisesRegex(ValueError, 'read-only'):
      again.weights[0, 0, 0] = 1

  def test_is_a_static_argument_that_does_not_recompile(self):
    traces = []

    def mean(x, topology):
      traces.append(topology.name)
      return x @ topology.weights[0].astype(np.float32)

    mean = jax.jit(mean, static_argnums=1)
    for topology in (graphs.ring(4), graphs.ring(4), graphs.star(4)):
      mean(np.ones(4, np.float32), topology)
    self.assertEqual(traces, ['ring', 'star'])


class StochasticityTest(parameterized.TestCase):
  def test_b17_equal_weights_on_an_irregular_digraph_lose_the_mean(self):
    # The recipe gives rows that sum to 1; the columns then sum to what they
    # may, and a graph that claims more would move the mean.
    graph = networkx.DiGraph([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])
    weights = _uniform_over_listeners(graph)
    topology = Topology(weights, 'recipe')
    self.assertTrue(topology.is_row_stochastic())
    self.assertFalse(topology.is_column_stochastic())
    self.assertFalse(topology.is_doubly_stochastic())
    transposed = Topology(weights.T, 'push')
    self.assertTrue(transposed.is_column_stochastic())
    self.assertFalse(transposed.is_row_stochastic())

  def test_b19_a_path_is_not_declared_regular(self):
    weights = _uniform_over_listeners(networkx.path_graph(5))
    topology = Topology(weights, 'path')
    self.assertFalse(topology.is_doubly_stochastic())
    self.assertFalse(topology.is_symmetric())

  def test_one_asymmetric_round_makes_the_period_asymmetric(self):
    rounds = np.stack(
      [graphs.ring(5).weights[0], graphs.exponential(5).weights[0]]
    )
    self.assertFalse(Topology(rounds, 'mixture').is_symmetric())
    self.assertTrue(Topology(rounds, 'mixture').is_doubly_stochastic())


class ConnectivityTest(parameterized.TestCase):
  def test_rounds_may_connect_together_what_each_does_not(self):
    pairs = np.kron(np.eye(2), HALVES)
    crossed = pairs[[1, 2, 3, 0]][:, [1, 2, 3, 0]]
    self.assertFalse(Topology(pairs, 'pairs').is_connected())
    both = Topology(np.stack([pairs, crossed]), 'both')
    self.assertTrue(both.is_connected())
    self.assertEqual(both.degree, 1)

  def test_a_one_way_street_is_not_connected(self):
    for weights in ([[1, 0], [0.5, 0.5]], [[0.5, 0.5], [0, 1]]):
      self.assertFalse(Topology(weights, 'one way').is_connected())


class SpectralGapTest(parameterized.TestCase):
  def test_unequal_rounds_shrink_disagreement_as_promised(self):
    rng = np.random.default_rng(0)
    topology = graphs.one_peer_exponential(11)
    x = rng.normal(size=11)
    x -= x.mean()
    size = np.linalg.norm(x)
    for weights in topology.weights:
      x = weights @ x
    rate = 1 - topology.spectral_gap()
    self.assertLessEqual(np.linalg.norm(x), size * rate**topology.period)

  def test_is_per_round(self):
    once = graphs.ring(6)
    thrice = Topology(np.repeat(once.weights, 3, axis=0), 'thrice')
    self.assertAlmostEqual(once.spectral_gap(), thrice.spectral_gap(), 12)

  def test_long_periods_are_not_taken_for_exact_averaging(self):
    # The product over such a period is far below the rounding of its entries.
    once = graphs.hypercube(8)
    long = Topology(np.repeat(once.weights, 200, axis=0), 'long')
    self.assertAlmostEqual(long.spectral_gap(), once.spectral_gap(), 9)

  def test_of_a_directed_irregular_graph_is_its_asymptotic_rate(self):
    graph = networkx.DiGraph([(0, 1), (1, 2), (2, 0), (0, 2)])
    weights = _uniform_over_listeners(graph)
    second = np.sort(np.abs(np.linalg.eigvals(weights)))[-2]
    for matrix in (weights, weights.T):
      self.assertAlmostEqual(
        Topology(matrix, 'x').spectral_gap(), 1 - second, 12
      )

  @parameterized.parameters(10, 50, 200)
  def test_of_those_who_follow_a_leader_is_how_fast_one_follows(self, workers):
    # Eigenvalues 1/2, workers - 1 times, with one eigenvector for all.
    path = networkx.path_graph(workers, create_using=networkx.DiGraph)
    for matrix in (
      (follow := row_stochastic(path).weights[0]),
      follow[::-1, ::-1],
    ):
      for weights in (matrix, matrix.T):
        self.assertAlmostEqual(Topology(weights, 'x').spectral_gap(), 0.5, 12)
    two = networkx.disjoint_union(path, path)
    self.assertEqual(row_stochastic(two).spectral_gap(), 0)

  def test_of_a_long_period_with_a_leader_is_that_of_a_round(self):
    leader = np.array([[0.4, 0.6, 0], [0.6, 0.4, 0], [0.05, 0.05, 0.9]])
    for matrix in (leader, leader.T):
      long = Topology(np.repeat(matrix[None], 100, axis=0), 'long')
      self.assertAlmostEqual(long.spectral_gap(), 0.1, 9)

  def test_of_doubly_stochastic_weights_is_what_a_period_promises(self):
    # One round of it leaves a distance as it is; its eigenvalues are 1 and 0.
    matrix = np.repeat(np.kron(np.eye(2), [[0.5, 0.5]]), 2, axis=0)[
      [0, 2, 1, 3]
    ]
    topology = Topology(matrix, 'de Bruijn')
    self.assertTrue(topology.is_doubly_stochastic())
    self.assertFalse(topology.is_symmetric())
    self.assertEqual(topology.spectral_gap(), 0)

  def test_is_zero_when_workers_only_swap(self):
    self.assertAlmostEqual(Topology(SWAP, 'swap').spectral_gap(), 0)


class BadWeightsTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('vector', [1.0], r'shape \[period, workers, workers\].*got \[1\]'),
    ('not_square', np.ones((1, 2, 3)) / 3, r'got \[1, 2, 3\]'),
    ('no_rounds', np.ones((0, 3, 3)), r'got \[0, 3, 3\]'),
    (
      'nan',
      [[1, 0], [0, np.nan]],
      r'finite weights, but weights\[0, 1, 1\] is nan',
    ),
    ('negative', [[1.5, -0.5], [0, 1]], r'weights\[0, 0, 1\] is -0\.5'),
    (
      'sums',
      [[0.5, 0.5], [0.5, 0.25]],
      r"'mine' .*row 1 of round 0 sums to 0\.75 and column 1 .*0\.75.*Divide",
    ),
    (
      'almost',
      [[0.5, 0.5], [0.5, 0.5 + 1e-11]],
      r'row 1 of round 0 sums to 1\.00000000001 ',
    ),
    (
      'neither_in_all_rounds',
      [[[1, 0], [1, 0]], [[0.5, 0], [0.5, 1]]],
      'row 0 of round 1 sums to 0.5 and column 0 of round 0 to 2',
    ),
  )
  def test_is_refused_with_advice(self, weights, message):
    with self.assertRaisesRegex(ValueError, message):
      Topology(weights, 'mine')

  def test_float32_is_told_from_what_was_never_divided(self):
    weights = np.random.default_rng(0).random((50, 50)).astype(np.float32)
    for axis in (-1, -2):
      divided = weights / weights.sum(axis=axis, keepdims=True)
      with self.assertRaises(ValueError) as caught:
        Topology(divided, 'mine')
      _, _, advice = str(caught.exception).partition('digits: ')
      first, second = advice.rstrip('.').split('; ')
      names = {'np': np, 'weights': divided}
      exec(first, names)
      topology = Topology(eval(second, names), 'mine')
      self.assertEqual(topology.is_row_stochastic(), axis == -1)

  @parameterized.named_parameters(
    ('a_name', 'ring', TypeError, 'got <U4 in a str.*decopt.ring'),
    ('ragged', [[1, 0], [1]], ValueError, "'x' needs weights in rows of equal"),
    ('complex', np.eye(2) * 1j, TypeError, 'real numbers, but got complex128'),
    ('nothing', None, TypeError, 'real numbers, but got object in a NoneType'),
  )
  def test_what_is_no_matrix_is_refused(self, weights, error, message):
    with self.assertRaisesRegex(error, message):
      Topology(weights, 'x')

  def test_name_and_weights_in_the_wrong_order_are_refused(self):
    with self.assertRaisesRegex(TypeError, r"Topology\(weights, 'mine'\)"):
      Topology('ring', HALVES)


if __name__ == '__main__':
  absltest.main()
