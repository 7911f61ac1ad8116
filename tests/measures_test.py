"""How fast graphs agree, against brute force and closed forms."""

import math

import networkx
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from decopt import measures

DECAYS = (0.0, 0.5, 0.95, 0.999)


def _rounds(seed, rule):
  """A random directed topology with 2 to 9 workers and 1 to 3 rounds."""
  rng = np.random.default_rng(seed)
  workers, period = int(rng.integers(2, 10)), int(rng.integers(1, 4))
  density = rng.uniform(0.1, 0.6)
  links = rng.random((period, workers, workers)) < density
  links &= ~np.eye(workers, dtype=bool)
  graphs = [networkx.DiGraph(list(map(tuple, np.argwhere(m)))) for m in links]
  for graph in graphs:
    graph.add_nodes_from(range(workers))
  return decopt.Topology(
    np.concatenate([rule(graph).weights for graph in graphs]), f'random {seed}'
  )


def _families():
  yield from (decopt.ring(n) for n in range(1, 12))
  yield from (decopt.star(n) for n in range(2, 7))
  yield from (decopt.one_peer_exponential(n) for n in range(1, 12))
  yield from (decopt.complete(n) for n in (2, 5))
  yield decopt.torus(3, 4)
  yield decopt.Topology([[0, 1], [1, 0]], 'swap')
  yield decopt.Topology(np.eye(3), 'alone')
  for seed in range(60):
    rule = decopt.row_stochastic if seed % 2 else decopt.column_stochastic
    yield _rounds(seed, rule)


def _de_bruijn(workers):
  """Worker i hears 2 i and 2 i + 1: exact after log2(workers) rounds of it."""
  matrix = np.zeros((workers, workers))
  for i in range(workers):
    matrix[i, [2 * i % workers, (2 * i + 1) % workers]] = 0.5
  return decopt.Topology(matrix, 'de Bruijn')


def _products(topology, rounds):
  """The products of the first 0, 1, 2, ... rounds."""
  product = np.eye(topology.workers)
  for t in range(rounds):
    yield product
    product = topology.weights[t % topology.period] @ product


class RoundsTest(parameterized.TestCase):
  def test_is_the_first_round_at_which_workers_are_close(self):
    for topology in _families():
      expected = None
      for rounds, product in enumerate(_products(topology, 400)):
        values = product / product.sum(axis=1, keepdims=True)
        if np.linalg.norm(values - values.mean(axis=0), 2) <= 1e-3:
          expected = rounds
          break
      self.assertEqual(topology.report().rounds_to, expected, topology)

  def test_a_ring_needs_its_spectral_gap(self):
    # Two rounds that are the same take the general way, by squaring.
    for workers in (16, 50, 100):
      rate = (1 + 2 * math.cos(2 * math.pi / workers)) / 3
      expected = math.ceil(math.log(1e-3) / math.log(rate))
      ring = decopt.ring(workers)
      twice = decopt.Topology(np.repeat(ring.weights, 2, axis=0), 'twice')
      for topology in (ring, twice):
        self.assertEqual(measures.rounds_to(topology, 1e-3), expected)

  def test_a_ring_of_1024_workers_takes_half_a_million(self):
    ring = decopt.ring(1024)
    rate = (1 + 2 * math.cos(2 * math.pi / 1024)) / 3
    expected = math.ceil(math.log(1e-3) / math.log(rate))
    self.assertEqual(measures.rounds_to(ring, 1e-3), expected)
    self.assertGreater(expected, 500_000)

  def test_a_chain_of_1024_workers_takes_two_million(self):
    rate = (1 + 2 * math.cos(math.pi / 1024)) / 3
    expected = math.ceil(math.log(1e-3) / math.log(rate))
    self.assertEqual(expected, 2_201_700)
    self.assertEqual(decopt.chain(1024).rounds_to(), expected)

  def test_a_directed_ring_needs_its_spectral_gap(self):
    for workers in (5, 8, 500):
      ring = decopt.ring(workers, directed=True)
      rate = math.cos(math.pi / workers)
      expected = math.ceil(math.log(1e-3) / math.log(rate))
      self.assertEqual(ring.rounds_to(), expected)

  def test_several_periods_may_do_what_a_single_one_does_not(self):
    for power in (2, 3, 4):
      topology = _de_bruijn(2**power)
      self.assertEqual(topology.spectral_gap(), 0)
      self.assertEqual(topology.rounds_to(), power)
      self.assertIn('never', str(decopt.ring(4).report()))
      self.assertNotIn('never', str(topology.report()))
      self.assertRegex(str(topology.report()), r'spectral gap +0\n')

  def test_is_for_any_tolerance(self):
    ring = decopt.ring(9)
    rate = 1 - ring.spectral_gap()
    for tolerance in (0.9, 0.1, 1e-9):
      expected = math.ceil(math.log(tolerance) / math.log(rate))
      self.assertEqual(ring.rounds_to(tolerance), expected)
    for tolerance in (0, 1, -1, float('nan')):
      with self.assertRaisesRegex(ValueError, f'0 and 1, but got {tolerance}'):
        ring.rounds_to(tolerance)
    with self.assertRaisesRegex(TypeError, "as tolerance, but got 'small'"):
      ring.rounds_to('small')

  def test_may_end_within_a_period(self):
    topology = decopt.one_peer_exponential(8)
    padded = np.concatenate([topology.weights, [np.eye(8)] * 4])
    self.assertEqual(decopt.Topology(padded, 'x').report().rounds_to, 3)

  def test_never_for_graphs_in_parts_and_for_swaps(self):
    pairs = decopt.metropolis(networkx.Graph([(0, 1), (2, 3)]))
    swap = decopt.Topology([[0, 1], [1, 0]], 'swap')
    # Worker 0 gives half away in each round, hears nobody, and so keeps its
    # own value, of which there is less and less.
    drain = decopt.Topology([[0.5, 0], [0.5, 1]], 'drain')
    turn = np.roll(np.eye(3), 1, axis=0)
    there_and_back = decopt.Topology([turn, turn.T], 'there and back')
    for topology in (pairs, swap, drain, there_and_back):
      self.assertIsNone(topology.report().rounds_to)
      self.assertIn('never', str(topology.report()))

  def test_a_leader_that_hears_nobody_is_agreed_with(self):
    leader = decopt.Topology([[1, 0], [0.5, 0.5]], 'leader')
    # After t rounds they are 2**-t apart; the distance is that, over root 2,
    # times the root of 2 that (1, -1) has for its length.
    self.assertEqual(leader.report().rounds_to, 10)


class AgreementTest(parameterized.TestCase):
  def test_is_told_by_the_second_eigenvalue_of_a_period(self):
    rng = np.random.default_rng(0)
    shuffled = []
    for seed in range(60):
      workers, period = int(rng.integers(2, 7)), int(rng.integers(1, 4))
      rounds = np.stack([np.eye(workers)[rng.permutation(workers)]] * period)
      other = np.eye(workers)[rng.integers(workers, size=workers)]
      rounds[-1] = (rounds[-1] + other) / 2
      if seed % 2:
        rounds = rounds.swapaxes(1, 2)
      shuffled.append(decopt.Topology(rounds, f'shuffled {seed}'))
    for topology in (*_families(), *shuffled):
      *_, product = _products(topology, topology.period + 1)
      if topology.is_row_stochastic():
        moduli = np.sort(np.abs(np.linalg.eigvals(product)))
        expected = topology.workers == 1 or moduli[-2] < 1 - 1e-9
      else:
        limit = np.linalg.matrix_power(product > 0, 200)
        expected = bool(limit.all())
      self.assertEqual(measures.agree(topology), expected, topology)


class EffectiveNeighboursTest(parameterized.TestCase):
  @parameterized.parameters(*DECAYS)
  def test_of_symmetric_weights_is_the_formula_of_the_eigenvalues(self, decay):
    for topology in (decopt.ring(9), decopt.star(6), decopt.torus(3, 4)):
      squares = np.linalg.eigvalsh(topology.weights[0]) ** 2
      variance = np.mean(squares / (1 - decay * squares))
      self.assertAlmostEqual(
        topology.effective_neighbours(decay), 1 / (1 - decay) / variance, 8
      )

  @parameterized.parameters(*DECAYS)
  def test_of_doubly_stochastic_rounds_is_the_sum_over_products(self, decay):
    for workers in (3, 6, 8):
      topology = decopt.one_peer_exponential(workers)
      variances = []
      for last in range(topology.period):
        product, variance = np.eye(workers), 0.0
        for k in range(20000 if decay > 0.99 else 1000):
          product = product @ topology.weights[(last - k) % topology.period]
          variance += decay**k * np.sum(product**2) / workers
        variances.append(variance)
      expected = 1 / (1 - decay) / np.mean(variances)
      self.assertAlmostEqual(topology.effective_neighbours(decay), expected, 5)

  def test_of_push_sum_is_that_of_the_values_it_stands_for(self):
    graph = networkx.DiGraph([(0, 1), (1, 2), (2, 0), (0, 2), (2, 3), (3, 0)])
    topology = decopt.column_stochastic(graph)
    matrix, decay = topology.weights[0], 0.9
    values, vectors = np.linalg.eig(matrix)
    held = vectors[:, values.real.argmax()].real
    held *= 4 / held.sum()
    product, variance = np.eye(4), 0.0
    for k in range(2000):
      product = matrix @ product
      variance += decay**k * np.mean(np.sum(product**2, axis=1) / held**2)
    self.assertAlmostEqual(
      topology.effective_neighbours(decay), 10 / variance, 9
    )

  def test_of_push_sum_in_several_rounds_is_the_mean_over_the_last_one(self):
    first = networkx.DiGraph([(0, 1), (1, 2), (2, 0), (0, 2)])
    second = networkx.DiGraph([(2, 1), (1, 0), (0, 2)])
    topology = decopt.alternate(*map(decopt.column_stochastic, (first, second)))
    decay, variances = 0.9, []
    for last in range(2):
      product, variance = np.eye(3), 0.0
      held = np.linalg.matrix_power(
        topology.weights[last] @ topology.weights[1 - last], 500
      ).sum(axis=1)
      for k in range(1000):
        product = product @ topology.weights[(last - k) % 2]
        variance += decay**k * np.mean(np.sum(product**2, axis=1) / held**2)
      variances.append(variance)
    self.assertGreater(np.ptp(variances), 0.01)
    self.assertAlmostEqual(
      topology.effective_neighbours(decay), 10 / np.mean(variances), 8
    )

  def test_all_count_on_the_complete_graph_and_nobody_else_without_links(self):
    for workers in (1, 2, 7):
      for decay in DECAYS:
        self.assertAlmostEqual(
          decopt.complete(workers).effective_neighbours(decay), workers, 9
        )
        alone = decopt.Topology(np.eye(workers), 'alone')
        self.assertAlmostEqual(alone.effective_neighbours(decay), 1, 9)

  def test_rises_from_the_neighbours_to_all_with_the_decay(self):
    decays = (0, 0.5, 0.9, 0.99, 0.999999)
    ring = [decopt.ring(12).effective_neighbours(decay) for decay in decays]
    self.assertEqual(ring, sorted(ring))
    self.assertAlmostEqual(ring[0], 3, 12)
    self.assertAlmostEqual(ring[-1], 12, 2)
    graph = networkx.gnp_random_graph(12, 0.3, seed=5, directed=True)
    push = decopt.column_stochastic(graph)
    self.assertGreater(np.ptp(push.weights.sum(axis=2)), 0.5)
    self.assertAlmostEqual(push.effective_neighbours(1 - 1e-7), 12, 3)

  def test_is_zero_where_the_weight_of_a_worker_dies_out(self):
    drain = decopt.Topology([[0.5, 0], [0.5, 1]], 'drain')
    self.assertEqual(drain.effective_neighbours(), 0)

  def test_refuses_what_is_no_number(self):
    with self.assertRaisesRegex(TypeError, "as decay, but got 'x'"):
      decopt.ring(4).effective_neighbours('x')

  @parameterized.parameters(-0.1, 1, float('nan'))
  def test_refuses_other_decays(self, decay):
    with self.assertRaisesRegex(ValueError, f'less than 1, but got {decay}'):
      decopt.ring(4).effective_neighbours(decay)


class DistanceTest(parameterized.TestCase):
  def test_diameter_is_the_longest_shortest_path(self):
    for topology in _families():
      graph = networkx.DiGraph(
        (sender, receiver)
        for receiver, sender in np.argwhere(topology.links.any(axis=0))
      )
      graph.add_nodes_from(range(topology.workers))
      expected = None
      if networkx.is_strongly_connected(graph):
        expected = networkx.diameter(graph)
      self.assertEqual(measures.diameter(topology), expected, topology)

  def test_diameter_has_closed_forms(self):
    for topology, expected in (
      (decopt.ring(9), 4),
      (decopt.ring(10), 5),
      (decopt.complete(10), 1),
      (decopt.complete(1), 0),
      (decopt.hypercube(64), 6),
      (decopt.star(9), 2),
      (decopt.torus(4, 6), 5),
      (decopt.ring(1000), 500),
    ):
      self.assertEqual(measures.diameter(topology), expected, topology)

  def test_exact_after_is_the_first_product_that_averages(self):
    for power in range(6):
      topology = decopt.one_peer_exponential(2**power)
      self.assertEqual(topology.report().exact_after, power)
    for topology, expected in (
      (decopt.complete(5), 1),
      (decopt.complete(1), 0),
      (decopt.ring(3), 1),
      (decopt.ring(4), None),
      (decopt.one_peer_exponential(6), None),
      (_de_bruijn(4), 2),
      (_de_bruijn(32), 5),
      (decopt.alternate(_de_bruijn(8), decopt.star(8)), None),
    ):
      self.assertEqual(topology.report().exact_after, expected, topology)

  def test_close_is_not_exact(self):
    nearly = decopt.lazy(decopt.complete(4), 1e-5)
    self.assertEqual(
      decopt.alternate(nearly, decopt.complete(4)).report().exact_after, 2
    )
    # Five of its rounds would be exact but for 1e-4, eight are but for 1e-15.
    bit_by_bit = decopt.lazy(_de_bruijn(32), 1e-4)
    self.assertIsNone(bit_by_bit.report().exact_after)
    for keep in (1e-5, 1e-9):
      topology = decopt.lazy(decopt.complete(4), keep)
      self.assertIsNone(topology.report().exact_after)

  def test_exact_after_is_of_de_biased_values(self):
    # The middle has all the weight there is to have, thrice that of an end.
    matrix = np.outer([0.2, 0.6, 0.2], np.ones(3))
    topology = decopt.Topology(matrix, 'push')
    self.assertFalse(topology.is_row_stochastic())
    self.assertEqual(topology.report().exact_after, 1)
    heard = decopt.Topology(matrix.T, 'pull')  # they agree, but on another mean
    self.assertEqual(heard.spectral_gap(), 1)
    self.assertIsNone(heard.report().exact_after)


if __name__ == '__main__':
  absltest.main()
