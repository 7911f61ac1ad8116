"""Topologies that come from files, and go there and back."""

import json
import pathlib
import tempfile

import networkx
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

import decopt

DIGRAPH = networkx.DiGraph([(0, 1), (0, 2), (1, 2), (2, 0), (3, 0)])
HALVES = [[0.5, 0.5, 0], [0.25, 0.5, 0.25], [0, 0, 1]]
NUMBERS = ('.npy', '.csv', '.json')


class FilesTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.directory = pathlib.Path(
      self.enter_context(tempfile.TemporaryDirectory())
    )

  def write(self, name, content):
    """A file with text or bytes, or numbers in the format of its name."""
    path = self.directory / name
    if isinstance(content, (str, bytes)):
      path.write_bytes(
        content.encode() if isinstance(content, str) else content
      )
    elif path.suffix == '.npy':
      np.save(path, content)
    elif path.suffix == '.json':
      path.write_text(json.dumps(np.asarray(content).tolist()))
    else:
      rows = [','.join(map(repr, row)) for row in np.asarray(content).tolist()]
      path.write_text('\n'.join(rows))
    return path


class LoadTest(FilesTest):
  @parameterized.parameters(*NUMBERS)
  def test_edges_become_an_undirected_graph_with_metropolis_weights(self, end):
    graph = networkx.karate_club_graph()
    edges = np.array(graph.edges, dtype=np.int32)
    topology = decopt.load_topology(self.write(f'club{end}', edges))
    self.assertEqual(topology.name, 'club')
    np.testing.assert_array_equal(
      topology.weights, decopt.metropolis(graph).weights
    )

  @parameterized.parameters(*NUMBERS)
  def test_an_adjacency_gets_weights_that_suit_its_links(self, end):
    matrix = networkx.to_numpy_array(networkx.path_graph(4), dtype=int)
    topology = decopt.load_topology(self.write(f'path{end}', matrix))
    np.testing.assert_array_equal(
      topology.weights, decopt.metropolis(networkx.path_graph(4)).weights
    )
    matrix = networkx.to_numpy_array(DIGRAPH, dtype=int) + np.eye(4, dtype=int)
    topology = decopt.load_topology(self.write(f'directed{end}', matrix))
    np.testing.assert_array_equal(
      topology.weights, decopt.column_stochastic(DIGRAPH).weights
    )

  @parameterized.parameters(*NUMBERS)
  def test_weights_are_taken_as_they_are(self, end):
    topology = decopt.load_topology(self.write(f'w{end}', HALVES), name='mine')
    self.assertEqual(topology, decopt.Topology(HALVES, 'mine'))
    columns = np.transpose(HALVES)
    topology = decopt.load_topology(self.write(f'columns{end}', columns))
    np.testing.assert_array_equal(topology.weights[0], columns)

  @parameterized.parameters('.npy', '.json')
  def test_weights_may_have_a_period(self, end):
    rounds = decopt.one_peer_exponential(6).weights
    topology = decopt.load_topology(self.write(f'rounds{end}', rounds))
    np.testing.assert_array_equal(topology.weights, rounds)

  def test_json_says_how_many_workers_and_which_way(self):
    content = {
      'name': 'streets',
      'workers': 5,
      'edges': list(DIGRAPH.edges),
      'directed': True,
    }
    topology = decopt.load_topology(self.write('x.json', json.dumps(content)))
    graph = DIGRAPH.copy()
    graph.add_node(4)
    expected = decopt.column_stochastic(graph)
    self.assertEqual(topology, decopt.Topology(expected.weights, 'streets'))
    named = decopt.load_topology(self.directory / 'x.json', name='mine')
    self.assertEqual(named.name, 'mine')

  def test_the_diagonal_says_nothing(self):
    path = networkx.path_graph(3)
    matrix = networkx.to_numpy_array(path) + np.eye(3)
    topology = decopt.load_topology(self.write('x.npy', matrix))
    expected = decopt.metropolis(path).weights
    np.testing.assert_array_equal(topology.weights, expected)
    edges = self.write('edges.npy', [[0, 1], [1, 2], [2, 2]])
    topology = decopt.load_topology(edges)
    np.testing.assert_array_equal(topology.weights, expected)

  def test_workers_may_be_without_links_if_their_number_is_said(self):
    for edges, links in (([], 0), ([[1, 2]], 2)):
      content = {'edges': edges, 'workers': 3}
      path = self.write('x.json', json.dumps(content))
      topology = decopt.load_topology(path)
      self.assertEqual((topology.workers, topology.links.sum()), (3, links))

  @parameterized.parameters('.NPY', '.Csv', '.JSON')
  def test_endings_may_have_capitals(self, end):
    path = self.directory / f'x{end}'
    decopt.save_topology(decopt.ring(4), path)
    loaded = decopt.load_topology(path, name='ring')
    self.assertEqual(loaded, decopt.ring(4))

  @parameterized.parameters(3, True, b'x')
  def test_the_name_is_a_string(self, name):
    path = self.write('x.npy', HALVES)
    with self.assertRaisesRegex(TypeError, f'string as name, but got {name}'):
      decopt.load_topology(path, name=name)

  def test_csv_may_have_titles_comments_and_empty_lines(self):
    text = '# a path\n\n"from", to\n0, 1 # first\n1,2\n\n# the end\n'
    topology = decopt.load_topology(self.write('path.csv', text))
    self.assertEqual(
      topology.weights.tolist(),
      decopt.metropolis(networkx.path_graph(3)).weights.tolist(),
    )

  def test_lines_may_end_as_on_windows(self):
    path = self.write('path.csv', b'\xef\xbb\xbf0,1\r\n1,2\r\n')
    self.assertEqual(decopt.load_topology(path).workers, 3)

  @parameterized.parameters(*NUMBERS)
  def test_what_could_be_several_kinds_must_be_said(self, end):
    swap = self.write(f'swap{end}', [[0, 1], [1, 0]])
    with self.assertRaisesRegex(
      ValueError, "edges or adjacency or weights.*kind='edges'"
    ):
      decopt.load_topology(swap)
    for kind, expected in (
      ('edges', [[0.5, 0.5], [0.5, 0.5]]),
      ('adjacency', [[0.5, 0.5], [0.5, 0.5]]),
      ('weights', [[0, 1], [1, 0]]),
    ):
      topology = decopt.load_topology(swap, kind=kind)
      self.assertEqual(topology.weights[0].tolist(), expected)

  def test_three_in_a_circle_are_an_adjacency_or_weights(self):
    circle = self.write('circle.npy', np.eye(3)[[2, 0, 1]])
    with self.assertRaisesRegex(ValueError, 'could be adjacency or weights'):
      decopt.load_topology(circle)
    # Row u has 1 in column v if u sends to v: 0 -> 2, 1 -> 0, 2 -> 1.
    adjacency = decopt.load_topology(circle, kind='adjacency').weights[0]
    self.assertEqual(adjacency[2, 0], 0.5)
    self.assertEqual(adjacency[0, 2], 0)
    # Row i puts a weight on column j: 0 hears 2.
    weights = decopt.load_topology(circle, kind='weights').weights[0]
    self.assertEqual(weights[0, 2], 1)


class ErrorsTest(FilesTest):
  @parameterized.named_parameters(
    ('ending', 'x.txt', '0,1', None, r"'.txt'.*\.npy, \.csv, \.json"),
    ('empty', 'x.csv', '# nothing\n', None, 'x.csv holds no numbers.*torn'),
    ('word', 'x.csv', '0,1\n1,two\n', None, "line 2 is '1,two'.*'two'"),
    ('word_first', 'x.csv', '0,one\n1,2\n', None, "line 1 is '0,one'"),
    ('two_titles', 'x.csv', 'a,b\nc,d\n0,1\n', None, "line 2 is 'c,d'"),
    ('hole', 'x.csv', '0,1\n1,\n', None, "line 2 is '1,'"),
    (
      'torn_csv',
      'x.csv',
      '0.5,0.5,0\n\n0.5,0.5,0\n0,0',
      None,
      'line 4 has 2 numbers, but line 1 has 3. Is it torn',
    ),
    ('no_text', 'x.csv', b'\x93NUMPY\xff', None, 'byte 0 is not UTF-8'),
    (
      'nan_csv',
      'x.csv',
      '# kinds\n1,0\nnan,1\n',
      None,
      r'line 3, entry \[1, 0\] is nan, which is not finite',
    ),
    (
      'nan_first',
      'x.csv',
      'nan,nan\n0,1\n',
      None,
      r'line 1, entry \[0, 0\] is nan',
    ),
    ('inf_first', 'x.csv', 'inf,inf\n0,1\n', None, 'line 1, .* is inf, which'),
    ('nan', 'x.npy', [[1, 0], [0, np.inf]], None, r'entry \[1, 1\] is inf'),
    ('nan_json', 'x.json', '[[1, 0], [NaN, 1]]', None, r'\[1, 0\] is nan'),
    ('torn_json', 'x.json', '[[1, 0],\n [1', None, 'line 2, col.*torn'),
    ('ragged', 'x.json', '[[1, 0], [1]]', None, 'rows of equal length'),
    ('texts', 'x.json', '[["a", "b"]]', None, 'matrix of real numbers'),
    ('keys', 'x.json', '{"nodes": 3}', None, 'nodes, but needs one of edges'),
    (
      'two_kinds',
      'x.json',
      '{"edges": [[0, 1]], "weights": [[1]]}',
      None,
      'edges, weights, but needs one of',
    ),
    (
      'workers',
      'x.json',
      '{"edges": [[0, 1]], "workers": "3"}',
      None,
      "needs an integer as workers, but has '3'",
    ),
    (
      'true_workers',
      'x.json',
      '{"edges": [[0, 1]], "workers": true}',
      None,
      'needs an integer as workers, but has True',
    ),
    ('no_edges', 'x.json', '{"edges": []}', None, 'x.json holds no numbers'),
    (
      'empty_weights',
      'x.json',
      '{"weights": [], "workers": 3}',
      None,
      "'workers' or 'directed', which belong to edges",
    ),
    (
      'counted_from_1',
      'x.csv',
      '1,2\n2,3\n3,4\n',
      None,
      r'no link of worker 0, though .* 4\. Count workers from 0.*"workers": 5',
    ),
    ('skipped', 'x.npy', [[0, 1], [3, 1]], None, 'no link of worker 2, though'),
    (
      'large',
      'x.csv',
      '1,200000',
      None,
      '200001 workers; up to 16,384 .*from 0',
    ),
    ('huge', 'x.csv', '0,1\n1,1e18', None, r'1e\+18 workers; up to 16,384'),
    ('vast', 'x.csv', '0,1\n1,1e300', None, r'1e\+300 workers; up to 16,384'),
    (
      'many_workers',
      'x.json',
      '{"edges": [[0, 1]], "workers": 1000000000000}',
      None,
      r'1e\+12 workers; up to 16,384',
    ),
    (
      'no_workers',
      'x.json',
      '{"edges": [[0, 1]], "workers": 0}',
      None,
      'needs 1 or more as workers, but has 0',
    ),
    (
      'directed',
      'x.json',
      '{"edges": [[0, 1]], "directed": 1}',
      None,
      'needs true or false as directed, but has 1',
    ),
    (
      'workers_of_weights',
      'x.json',
      '{"weights": [[1]], "workers": 1}',
      None,
      "'workers' or 'directed', which belong to edges.*for weights",
    ),
    (
      'out_of_range',
      'x.json',
      '{"edges": [[0, 1], [1, 3]], "workers": 3}',
      None,
      r'entry \[1, 1\] is 3, which is out of range for 3 workers',
    ),
    (
      'negative_edge',
      'x.csv',
      '0,1\n-1,2\n5,1',
      None,
      r'line 2, entry \[1, 0\] is -1, which is negative',
    ),
    ('half_edge', 'x.csv', '0,1\n0.5,2', 'edges', 'is 0.5.*not an integer'),
    ('three_ends', 'x.npy', np.eye(3), 'edges', 'edges have two columns'),
    ('oblong', 'x.npy', np.ones((2, 3)), 'weights', r'\[2, 3\].*square'),
    ('vector', 'x.npy', np.ones(2), None, r'shape \[2\] that are neither'),
    ('period', 'x.npy', np.ones((1, 2, 2)), 'adjacency', r'\[1, 2, 2\]'),
    ('twos', 'x.npy', [[0, 2], [2, 0]], 'adjacency', 'is 2, .*neither 0 nor 1'),
    (
      'negative',
      'x.npy',
      [[1.5, -0.5], [0, 1]],
      None,
      r'entry \[0, 1\] is -0.5, which is negative',
    ),
    (
      'sums',
      'x.npy',
      [[0.5, 0.4999], [0.4999, 0.5]],
      None,
      "x.npy: topology 'x' needs rows that sum to 1.*Divide",
    ),
    (
      'sums_that_are_close',
      'x.npy',
      [[0.5, 0.4995], [0.4995, 0.5]],
      None,
      "x.npy: topology 'x' needs rows that sum to 1.*Divide",
    ),
    (
      'sums_that_are_not',
      'x.npy',
      [[0.5, 0.498], [0.498, 0.5]],
      None,
      'neither',
    ),
    (
      'nothing',
      'x.npy',
      [[0.1, 0.2], [0.3, 0.4]],
      None,
      'neither edges.*nor an adjacency.*nor weights.*Give kind',
    ),
    ('kind', 'x.npy', np.eye(2), 'matrix', "edges, adj.*but got 'matrix'"),
    ('complex', 'x.npy', np.eye(2) * 1j, None, 'real numbers'),
  )
  def test_say_where_and_what_to_do(self, name, content, kind, message):
    path = self.write(name, content)
    with self.assertRaisesRegex(ValueError, message):
      decopt.load_topology(path, kind=kind)

  def test_a_file_that_is_not_there(self):
    with self.assertRaisesRegex(FileNotFoundError, 'no file .*x.npy'):
      decopt.load_topology(self.directory / 'x.npy')
    with self.assertRaisesRegex(FileNotFoundError, 'no file y.json. Relative'):
      decopt.load_topology('y.json')

  def test_a_torn_array(self):
    path = self.write('x.npy', np.eye(4))
    for size in (0, 5, 100, 200):
      path.write_bytes(path.read_bytes()[:size] if size else b'')
      with self.assertRaisesRegex(ValueError, 'x.npy is no .npy file.*again'):
        decopt.load_topology(path)
      np.save(path, np.eye(4))

  def test_pickles_are_not_opened(self):
    path = self.directory / 'x.npy'
    np.save(path, np.array([{}, None]), allow_pickle=True)
    with self.assertRaisesRegex(ValueError, 'no .npy file of numbers'):
      decopt.load_topology(path)


class SaveTest(FilesTest):
  def topologies(self):
    """B27: among them graphs with four neighbours and more."""
    yield from (decopt.ring(3), decopt.torus(3, 4), decopt.complete(7))
    yield from (decopt.star(1), decopt.ring(2))
    yield decopt.Topology(np.eye(2), 'alone')
    yield decopt.Topology(np.eye(4)[[1, 0, 3, 2]], 'swaps')
    yield decopt.column_stochastic(networkx.DiGraph(DIGRAPH))
    yield decopt.metropolis(networkx.karate_club_graph())
    yield decopt.one_peer_exponential(6)
    rng = np.random.default_rng(0)
    dense = rng.random((9, 9))
    yield decopt.Topology(dense / dense.sum(axis=1, keepdims=True), 'dense')

  @parameterized.parameters(*NUMBERS)
  def test_b27_weights_come_back_bit_for_bit(self, end):
    for topology in self.topologies():
      if end == '.csv' and topology.period > 1:
        continue
      path = self.directory / f'x{end}'
      decopt.save_topology(topology, path)
      loaded = decopt.load_topology(path)
      self.assertEqual(loaded.weights.tobytes(), topology.weights.tobytes())
      self.assertEqual(loaded.name, topology.name if end == '.json' else 'x')

  def test_csv_has_one_round(self):
    with self.assertRaisesRegex(ValueError, r'period of 3.*x\.npy or x\.json'):
      decopt.save_topology(
        decopt.one_peer_exponential(8), self.directory / 'x.csv'
      )

  def test_refuses_other_endings(self):
    with self.assertRaisesRegex(ValueError, "ends in 'nothing', but"):
      decopt.save_topology(decopt.ring(3), self.directory / 'x')


if __name__ == '__main__':
  absltest.main()
