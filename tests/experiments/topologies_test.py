"""Topologies and weight rules by name, with what a config says about them."""

import pathlib
import sys
import tempfile

import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from experiments import errors
from experiments import topologies
from experiments import weight_rules

#: Arguments of those that need some; `file` has tests of its own.
ARGUMENTS = {'alternate': {'of': ('ring', 'star')}}
NAMES = sorted(topologies.TOPOLOGIES.keys() - {'file'})


def build(name, workers=None, **arguments):
  """Builds a topology of its own number of workers, or else of 16."""
  section = {'name': name, **ARGUMENTS.get(name, {}), **arguments}
  workers = workers or topologies.own_number(section) or 16
  return topologies.build(section, workers)


class EveryTopologyTest(parameterized.TestCase):
  @parameterized.parameters(*NAMES)
  def test_its_name_is_enough(self, name):
    topology = build(name)
    self.assertTrue(topology.is_connected())
    self.assertEqual(topology.workers, 32 if name == 'davis_social' else 16)

  @parameterized.product(
    name=[
      'ring',
      'chain',
      'grid',
      'torus',
      'star',
      'binary_tree',
      'hypercube',
      'complete',
      'exponential',
      'one_peer_exponential',
      'base_graph',
      'round_robin',
      'two_level',
      'alternate',
    ],
    workers=[1, 2, 4],
  )
  def test_few_workers_are_enough(self, name, workers):
    self.assertEqual(build(name, workers).workers, workers)

  @parameterized.parameters(*NAMES)
  def test_an_argument_that_it_lacks_is_refused(self, name):
    with self.assertRaisesRegex(errors.UserError, "has no argument 'diameter'"):
      build(name, diameter=3)


class ArgumentsTest(parameterized.TestCase):
  @parameterized.named_parameters(
    (
      'ring',
      'ring',
      {'directed': True},
      lambda: decopt.ring(16, directed=True),
    ),
    (
      'symmetric',
      'exponential',
      {'symmetric': True},
      lambda: decopt.exponential(16, symmetric=True),
    ),
    ('base', 'base_graph', {'degree': 2}, lambda: decopt.base_graph(16, 2)),
    (
      'random',
      'erdos_renyi',
      {'probability': 0.5, 'seed': 3},
      lambda: decopt.erdos_renyi(16, 0.5, seed=3),
    ),
    ('grid', 'grid', {'rows': 2}, lambda: decopt.grid(2, 8)),
    ('grid_square', 'grid', {}, lambda: decopt.grid(4, 4)),
    ('torus', 'torus', {'columns': 2}, lambda: decopt.torus(8, 2)),
    ('torus_square', 'torus', {}, lambda: decopt.torus(4, 4)),
    ('levels', 'two_level', {}, lambda: decopt.two_level(4, 4)),
    (
      'levels_between',
      'two_level',
      {'machines': 8, 'between': 'torus(rows=2)'},
      lambda: decopt.two_level(8, 2, lambda _: decopt.torus(2, 4)),
    ),
    (
      'alternate',
      'alternate',
      {'of': 'ring,torus(rows=2)'},
      lambda: decopt.alternate(decopt.ring(16), decopt.torus(2, 8)),
    ),
    (
      'weights_inside',
      'alternate',
      {'of': ['ring(weights=lazy)', 'star']},
      lambda: decopt.alternate(decopt.lazy(decopt.ring(16)), decopt.star(16)),
    ),
  )
  def test_reach_the_constructor(self, name, arguments, expected):
    topology = topologies.build({'name': name, **arguments}, 16)
    np.testing.assert_array_equal(topology.weights, expected().weights)

  @parameterized.parameters(
    ('torus', {'rows': 3}, '3 rows and 5 columns has 15 workers, not 16'),
    ('grid', {'rows': 0}, '0 rows and 0 columns has 0 workers'),
    ('torus', {'rows': 'a'}, "config.topology.rows is 'a', not a number"),
    ('two_level', {'machines': 3}, 'over 3 machines; use 4 machines'),
    ('two_level', {'machines': 0}, 'over 0 machines; use 4 machines'),
    (
      'two_level',
      {'between': 'rng'},
      "no topology 'rng'; did you mean 'ring'",
    ),
    ('two_level', {'between': 'ring,star'}, 'more than one'),
    ('alternate', {}, '--config.topology.of='),
    ('alternate', {'of': 'ring,sta'}, "did you mean 'star'"),
    ('alternate', {'of': 3}, '3 is no name'),
    ('alternate', {'of': []}, 'no topologies'),
    ('hypercube', {'weights': 'metroplis'}, "did you mean 'metropolis'"),
    ('file', {}, '--config.topology.path='),
    ('file', {'path': 3}, 'path is 3'),
    ('file', {'path': 'missing.csv'}, 'missing.csv'),
    ('rign', {}, "did you mean 'ring'"),
  )
  def test_mistakes_are_one_line(self, name, arguments, advice):
    with self.assertRaises(errors.UserError) as caught:
      topologies.build({'name': name, **arguments}, 16)
    self.assertIn(advice, str(caught.exception))
    self.assertNotIn('\n', str(caught.exception))


class FileTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = pathlib.Path(
      self.enter_context(tempfile.TemporaryDirectory())
    )

  def write(self, name, contents):
    path = self.folder / name
    path.write_bytes(contents)
    return {'name': 'file', 'path': str(path)}

  def test_a_saved_topology_is_the_same_one(self):
    path = self.folder / 'star.npy'
    decopt.save_topology(decopt.star(5), path)
    section = {'name': 'file', 'path': str(path)}
    self.assertEqual(topologies.own_number(section), 5)
    loaded = topologies.build(section, 5)
    np.testing.assert_array_equal(loaded.weights, decopt.star(5).weights)

  def test_what_is_in_a_file_can_be_said(self):
    section = self.write('pair.csv', b'0,1\n1,0\n')
    edges = topologies.build(section | {'kind': 'edges'}, 2)
    np.testing.assert_array_equal(edges.weights[0], [[0.5, 0.5], [0.5, 0.5]])
    weights = topologies.build(section | {'kind': 'weights'}, 2)
    np.testing.assert_array_equal(weights.weights[0], [[0, 1], [1, 0]])

  def test_another_number_of_workers_is_named(self):
    section = self.write('triangle.csv', b'0,1\n1,2\n2,0\n')
    with self.assertRaisesRegex(errors.UserError, '3 workers, not 8'):
      topologies.build(section, 8)

  @parameterized.parameters(
    ('bad.csv', b'0,1\nfoo'),
    ('bad.json', b'{"weights": [1'),
    ('bad.npy', b'nothing of numpy'),
    ('empty.npy', b''),
    ('binary.csv', b'\xff\xfe\x00'),
    ('text.txt', b'0,1'),
  )
  def test_a_broken_file_is_one_line(self, name, contents):
    with self.assertRaises(errors.UserError) as caught:
      topologies.build(self.write(name, contents), 2)
    self.assertIn(name, str(caught.exception))
    self.assertNotIn('\n', str(caught.exception))

  def test_a_directory_is_one_line(self):
    with self.assertRaisesRegex(errors.UserError, str(self.folder)):
      topologies.build({'name': 'file', 'path': str(self.folder)}, 2)


class WeightsTest(parameterized.TestCase):
  @parameterized.parameters(*weight_rules.WEIGHTS)
  def test_every_rule_fits_an_undirected_graph(self, rule):
    function, _ = weight_rules.WEIGHTS[rule]
    topology = build('star', 6, weights=rule)
    expected = function(decopt.star(6))
    np.testing.assert_array_equal(topology.weights, expected.weights)
    np.testing.assert_array_equal(topology.links, decopt.star(6).links)

  def test_rules_take_arguments(self):
    topology = build('ring', 6, weights='lazy(keep=0.8)')
    expected = decopt.lazy(decopt.ring(6), keep=0.8)
    np.testing.assert_array_equal(topology.weights, expected.weights)

  def test_a_solver_that_is_missing_is_one_line(self):
    absent = object()
    there = sys.modules.get('cvxpy', absent)
    sys.modules['cvxpy'] = None  # importing it is an ImportError now
    try:
      with self.assertRaisesRegex(errors.UserError, 'cvxpy') as caught:
        build('chain', 6, weights='fastest_mixing')
    finally:
      del sys.modules['cvxpy']
      if there is not absent:
        sys.modules['cvxpy'] = there
    self.assertNotIn('\n', str(caught.exception))

  def test_none_leaves_the_weights_alone(self):
    self.assertEqual(build('ring', 6, weights=None), decopt.ring(6))

  @parameterized.parameters(
    ('exponential', 'metropolis', 'links that go both ways'),
    ('ring', 'lazy(keep=2)', 'config.topology.weights: lazy needs keep'),
    ('ring', 'lazy(kep=0.2)', "did you mean 'keep'"),
    ('ring', 'lazy,metropolis', 'more than one'),
    ('ring', 'lazy(', 'is not closed'),
    ('ring', 3, '3 is no name'),
  )
  def test_mistakes_are_one_line(self, name, rule, advice):
    with self.assertRaises(errors.UserError) as caught:
      build(name, 8, weights=rule)
    self.assertIn(advice, str(caught.exception))
    self.assertNotIn('\n', str(caught.exception))


class NumbersTest(parameterized.TestCase):
  def test_some_topologies_come_with_their_number(self):
    self.assertEqual(topologies.own_number({'name': 'davis_social'}), 32)
    self.assertIsNone(topologies.own_number({'name': 'ring'}))

  def test_another_number_is_an_error(self):
    with self.assertRaisesRegex(errors.UserError, '32'):
      topologies.build({'name': 'davis_social'}, 8)


if __name__ == '__main__':
  absltest.main()
