"""The named graphs, for every number of workers from 1 to 64."""

import functools

import networkx
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

from decopt import graphs
from decopt import weights

NUMBERS = range(1, 65)

# What is claimed of weights: of these, each is more than the one after it.
SYMMETRIC = 'symmetric and doubly stochastic'
DOUBLY = 'doubly stochastic'
COLUMNS = 'column-stochastic'


def _pairs(graph):
  """A function of a number: the graphs of all pairs with that product."""
  return lambda n: [
    graph(rows, n // rows) for rows in range(1, n + 1) if n % rows == 0
  ]


def _where(exists, graph):
  return lambda n: [graph(n)] if exists(n) else []


def _each(graph, **argument):
  """A function of a number: its graph for each value of an argument."""
  [(name, values)] = argument.items()
  return lambda n: [graph(n, **{name: value}) for value in values]


def _out_degrees(n):
  return [graphs.random_out_degree(n, degree, seed=n) for degree in (1, 2, 5)]


def _alternations(n):
  return [
    graphs.alternate(graphs.ring(n), graphs.one_peer_exponential(n)),
    graphs.alternate(*graphs_of('random_matchings', n), graphs.star(n)),
  ]


def _general_graphs(n):
  """A random graph that may be in pieces, a clique with a tail."""
  clique = networkx.complete_graph(n // 2)
  return [
    weights.metropolis(networkx.gnp_random_graph(n, 0.1, seed=n)),
    weights.metropolis(networkx.compose(networkx.path_graph(n), clique)),
  ]


# Name, graphs for a number of workers, what is claimed of their weights.
FAMILIES = (
  ('ring', _each(graphs.ring, directed=[False]), SYMMETRIC),
  ('ring_directed', _each(graphs.ring, directed=[True]), DOUBLY),
  ('chain', lambda n: [graphs.chain(n)], SYMMETRIC),
  ('grid', _pairs(graphs.grid), SYMMETRIC),
  ('torus', _pairs(graphs.torus), SYMMETRIC),
  ('star', lambda n: [graphs.star(n)], SYMMETRIC),
  ('binary_tree', lambda n: [graphs.binary_tree(n)], SYMMETRIC),
  (
    'hypercube',
    _where(lambda n: n.bit_count() == 1, graphs.hypercube),
    SYMMETRIC,
  ),
  ('complete', lambda n: [graphs.complete(n)], SYMMETRIC),
  ('exponential', lambda n: [graphs.exponential(n)], DOUBLY),
  (
    'exponential_symmetric',
    _each(graphs.exponential, symmetric=[True]),
    SYMMETRIC,
  ),
  ('one_peer_exponential', lambda n: [graphs.one_peer_exponential(n)], DOUBLY),
  (
    'one_peer_exponential_symmetric',
    _each(graphs.one_peer_exponential, symmetric=[True]),
    SYMMETRIC,
  ),
  ('base_graph', _each(graphs.base_graph, degree=range(1, 5)), SYMMETRIC),
  ('erdos_renyi', _each(graphs.erdos_renyi, seed=[0, 1]), SYMMETRIC),
  (
    'random_regular',
    _where(lambda n: n > 3 and n % 2 == 0, graphs.random_regular),
    SYMMETRIC,
  ),
  (
    'random_regular_of_degree_4',
    _where(lambda n: n > 4, lambda n: graphs.random_regular(n, 4)),
    SYMMETRIC,
  ),
  (
    'watts_strogatz',
    _each(graphs.watts_strogatz, neighbours=[2, 4]),
    SYMMETRIC,
  ),
  ('barabasi_albert', _each(graphs.barabasi_albert, links=[1, 2]), SYMMETRIC),
  ('expander', lambda n: [graphs.expander(n)], SYMMETRIC),
  ('davis_social', _where(lambda n: n == 32, graphs.davis_social), SYMMETRIC),
  (
    'random_matchings',
    _each(graphs.random_matchings, rounds=[2, 16]),
    SYMMETRIC,
  ),
  ('round_robin', lambda n: [graphs.round_robin(n)], SYMMETRIC),
  ('two_level', _pairs(graphs.two_level), SYMMETRIC),
  ('alternate', _alternations, DOUBLY),
  ('random_out_degree', _out_degrees, COLUMNS),
  ('metropolis', _general_graphs, SYMMETRIC),
)
# Those that are made of a graph of somebody else, which may be in pieces.
MAYBE_IN_PIECES = ('metropolis',)


@functools.cache
def graphs_of(name, n):
  """The graphs of a family with n workers, made once for all tests."""
  [family] = [family for other, family, _ in FAMILIES if other == name]
  return family(n)


class EveryGraphTest(parameterized.TestCase):
  @parameterized.named_parameters(
    (name, name, claim) for name, _, claim in FAMILIES
  )
  def test_weights_keep_their_promises(self, name, claim):
    for n in NUMBERS:
      for topology in graphs_of(name, n):
        weights = topology.weights
        self.assertEqual(topology.workers, n)
        self.assertGreaterEqual(weights.min(), 0, topology)
        np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=0, atol=1e-12)
        self.assertTrue(topology.is_column_stochastic(), topology)
        if claim != COLUMNS:
          np.testing.assert_allclose(weights.sum(axis=2), 1, rtol=0, atol=1e-12)
          self.assertTrue(topology.is_doubly_stochastic(), topology)
        if claim == SYMMETRIC:
          np.testing.assert_array_equal(weights, weights.swapaxes(1, 2))
          self.assertTrue(topology.is_symmetric(), topology)

  @parameterized.named_parameters(
    (name, name) for name, *_ in FAMILIES if name not in MAYBE_IN_PIECES
  )
  def test_news_of_all_reaches_all(self, name):
    for n in NUMBERS:
      for topology in graphs_of(name, n):
        self.assertTrue(topology.is_connected(), topology)
        self.assertGreater(topology.spectral_gap(), 1e-4, topology)

  @parameterized.named_parameters((name, name) for name, *_ in FAMILIES)
  def test_permutations_recombine_to_the_weights(self, name):
    for n in NUMBERS:
      for topology in graphs_of(name, n):
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

  @parameterized.named_parameters((name, name) for name, *_ in FAMILIES)
  def test_one_worker_keeps_its_value(self, name):
    for topology in graphs_of(name, 1):
      np.testing.assert_array_equal(topology.weights, 1)
      self.assertEqual((topology.degree, topology.spectral_gap()), (0, 1))
      self.assertEmpty(topology.permutations(0))

  def test_no_graph_is_missing_here(self):
    self.assertContainsSubset(graphs.__all__, [name for name, *_ in FAMILIES])


class BadSizeTest(parameterized.TestCase):
  @parameterized.named_parameters(
    (graph.__name__, graph)
    for graph in (
      graphs.barabasi_albert,
      graphs.base_graph,
      graphs.binary_tree,
      graphs.chain,
      graphs.complete,
      graphs.davis_social,
      graphs.erdos_renyi,
      graphs.expander,
      graphs.exponential,
      graphs.hypercube,
      graphs.one_peer_exponential,
      graphs.random_matchings,
      graphs.random_out_degree,
      graphs.random_regular,
      graphs.ring,
      graphs.round_robin,
      graphs.star,
      graphs.watts_strogatz,
    )
  )
  def test_numbers_of_workers_are_positive_integers(self, graph):
    for size in (0, -3):
      with self.assertRaisesRegex(ValueError, f'1 or more as w.*got {size}'):
        graph(size)
    with self.assertRaisesRegex(TypeError, r'integer as workers.*got 4\.0'):
      graph(4.0)
    with self.assertRaisesRegex(TypeError, 'integer as workers.*got True'):
      graph(True)
    self.assertEqual(graph(np.int64(32)), graph(32))

  @parameterized.named_parameters(
    ('grid', graphs.grid, 'rows', 'columns'),
    ('torus', graphs.torus, 'rows', 'columns'),
    ('two_level', graphs.two_level, 'machines', 'workers_per_machine'),
  )
  def test_both_sides_are_positive_integers(self, graph, first, second):
    with self.assertRaisesRegex(ValueError, f'1 or more as {first}.*got 0'):
      graph(0, 2)
    with self.assertRaisesRegex(ValueError, f'1 or more as {second}.*got -1'):
      graph(2, -1)
    with self.assertRaisesRegex(TypeError, rf'as {second}.*got 2\.5'):
      graph(2, 2.5)

  def test_hypercube_names_the_sizes_that_work(self):
    for n in NUMBERS:
      if n.bit_count() > 1:
        below, above = 1 << n.bit_length() - 1, 1 << n.bit_length()
        advice = rf'got {n}\. .*\({below}\) .*\({above}\).*exponential\({n}\)'
        with self.assertRaisesRegex(ValueError, advice):
          graphs.hypercube(n)

  def test_davis_social_names_its_size(self):
    for n in NUMBERS:
      if n != 32:
        advice = rf'32 workers, but got {n}\..*barabasi_albert\({n}\)'
        with self.assertRaisesRegex(ValueError, advice):
          graphs.davis_social(n)


if __name__ == '__main__':
  absltest.main()
