"""Links become permutations: valid, minimal, regular where that is possible."""

import time

import networkx
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

from decopt import colouring
from decopt import graphs


def _links(graph):
  """`links[receiver, sender]` of a networkx graph."""
  return networkx.to_numpy_array(graph, sorted(graph), weight=None).T > 0


class PermutationsTest(parameterized.TestCase):
  def _check(self, links):
    workers = np.arange(len(links))
    links = links & (workers[:, None] != workers)
    permutations = colouring.permutations(links)
    self.assertLen(
      permutations, max(links.sum(axis=0).max(), links.sum(1).max())
    )
    messages = np.zeros(links.shape, int)
    for sources, is_link in permutations:
      np.testing.assert_array_equal(np.sort(sources), workers)
      messages[workers[is_link], sources[is_link]] += 1
    np.testing.assert_array_equal(messages, links)
    return permutations

  def test_any_directed_graph_needs_as_many_as_its_degree(self):
    rng = np.random.default_rng(0)
    for n in range(1, 65):
      for density in (0.05, 0.3, 0.9):
        self._check(rng.random((n, n)) < density)

  def test_any_undirected_graph_needs_as_many_as_its_degree(self):
    rng = np.random.default_rng(1)
    for n in range(1, 65):
      for density in (0.05, 0.3, 0.9):
        half = rng.random((n, n)) < density
        self._check(half | half.T)

  def test_no_links_need_no_permutations(self):
    self.assertEmpty(colouring.permutations(np.eye(3, dtype=bool)))

  @parameterized.named_parameters(
    ('star', networkx.star_graph(6)),
    ('path', networkx.path_graph(9)),
    ('tree', networkx.balanced_tree(3, 3)),
    ('grid', networkx.grid_2d_graph(5, 7)),
    ('two_pieces', networkx.Graph([(0, 1), (1, 2), (3, 4)])),
  )
  def test_without_odd_cycles_workers_exchange_in_pairs(self, graph):
    for sources, is_link in self._check(_links(graph)):
      workers = np.arange(len(graph))
      np.testing.assert_array_equal(sources[sources], workers)
      np.testing.assert_array_equal(is_link, sources != workers)

  def test_a_chain_of_messages_is_closed_by_padding(self):
    links = np.zeros((4, 4), bool)
    links[1, 0] = links[2, 1] = True
    [(sources, is_link)] = self._check(links)
    np.testing.assert_array_equal(sources, [2, 0, 1, 3])
    np.testing.assert_array_equal(is_link, [False, True, True, False])

  def test_padding_that_follows_a_link_of_another_permutation_is_no_link(self):
    # A triangle with a tail: padding may run where there is a link as well.
    self._check(_links(networkx.Graph([(0, 1), (1, 2), (2, 0), (2, 3)])))

  def test_torus_shifts_along_rows_and_columns(self):
    permutations = colouring.permutations(graphs.torus(3, 5).weights[0] > 0)
    moves = set()
    for sources, _ in permutations:
      down, right = np.divmod(np.arange(15), 5)
      from_row, from_column = np.divmod(sources, 5)
      down, right = (down - from_row) % 3, (right - from_column) % 5
      [move] = set(zip(down.tolist(), right.tolist(), strict=True))
      moves.add(move)
    self.assertEqual(moves, {(0, 1), (0, 4), (1, 0), (2, 0)})

  def test_hypercube_flips_one_bit_at_a_time(self):
    permutations = colouring.permutations(graphs.hypercube(32).weights[0] > 0)
    for bit, (sources, _) in enumerate(permutations):
      np.testing.assert_array_equal(sources, np.arange(32) ^ (1 << bit))

  def test_is_deterministic(self):
    links = _links(networkx.gnp_random_graph(40, 0.3, seed=2))
    for one, two in zip(
      colouring.permutations(links),
      colouring.permutations(links.copy()),
      strict=True,
    ):
      np.testing.assert_array_equal(one.sources, two.sources)
      np.testing.assert_array_equal(one.is_link, two.is_link)

  def test_does_not_change_its_argument(self):
    links = np.ones((3, 3), bool)
    colouring.permutations(links)
    self.assertTrue(links.all())

  @parameterized.named_parameters(
    ('sparse', networkx.random_regular_graph(4, 1024, seed=0)),
    ('complete', networkx.complete_graph(64)),
    ('dense', networkx.gnp_random_graph(128, 0.5, seed=0)),
  )
  def test_takes_less_than_a_second(self, graph):
    start = time.process_time()
    permutations = colouring.permutations(_links(graph))
    self.assertLess(time.process_time() - start, 1)
    self.assertLen(permutations, max(degree for _, degree in graph.degree))


if __name__ == '__main__':
  absltest.main()
