"""The mixing suite: its programs for real, on small trees."""

import concurrent.futures
import dataclasses
import json
import multiprocessing
import pathlib
import subprocess
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from experiments.bench import cases
from experiments.bench import mixing
from experiments.bench import mixing_references as references
from experiments.bench import suites

REPOSITORY = pathlib.Path(__file__).parents[2]
NAMES = [
  'ring8',
  'one_peer8',
  'ring8_mesh',
  'ring8_memory',
  'regular1024',
  'logistic16',
  'logistic100',
  'logistic1000',
  'compile64',
]


class AgreementTest(parameterized.TestCase):
  """The hand-written programs compute what decopt computes."""

  @parameterized.named_parameters(
    ('ring', mixing.ring, 8),
    ('ring_of_few', mixing.ring, 3),
    ('one_peer', mixing.one_peer, 8),
    ('one_peer_not_a_power_of_two', mixing.one_peer, 6),
    ('mesh', mixing.ring_mesh, 8),
  )
  def test_of_rounds_on_a_tree(self, build, workers):
    contest = build(workers, width=4, steps=3)
    self.assertLen(contest.references, 1)
    cases.check_agreement('tree', contest)

  def test_of_an_irregular_graph_with_its_witness(self):
    contest = mixing.regular(workers=20, size=50, steps=3)
    cases.check_agreement('regular', contest)
    self.assertEqual(list(contest.references), ['circulant'])
    self.assertEqual(list(contest.witnesses), ['heard'])

  @parameterized.parameters(5, 16)
  def test_of_logistic_regression(self, workers):
    contest = mixing.logistic(workers, steps=20)
    cases.check_agreement('logistic', contest)
    # The model learns something, or it would agree on the zeros of the start.
    self.assertGreater(np.abs(contest.decopt()).max(), 0.1)

  def test_of_what_is_compiled_with_its_witness(self):
    contest = mixing.compilation(workers=5, width=4)
    cases.check_agreement('compile', contest)

  def test_a_form_that_forgets_a_neighbour_is_found_out(self):
    contest = mixing.ring(8, width=4, steps=1)
    lonely = references.repeated(
      lambda x, t: (x + jnp.roll(x, 1, axis=0)) / 2, 1, lambda x: x[:, :3]
    )
    ours = _gossip({'x': _rows(8, 16)})
    wrong = dataclasses.replace(
      contest,
      decopt=lambda: ours()[:, :3],
      references={'lonely': cases.looped(lonely, _rows(8, 16))},
    )
    with self.assertRaisesRegex(ArithmeticError, "'lonely'"):
      cases.check_agreement('test', wrong)


class ReferenceTest(parameterized.TestCase):
  """The hand-written programs compute what their names say."""

  @parameterized.named_parameters(
    ('ring', references.ring, decopt.ring(6).weights),
    (
      'one_peer',
      references.one_peer,
      decopt.one_peer_exponential(6).weights,
    ),
  )
  def test_steps_are_products_with_the_weights(self, step, weights):
    x = _rows(6, 5)
    for t in range(4):
      wanted = weights[t % len(weights)] @ x
      np.testing.assert_allclose(step(x, jnp.int32(t)), wanted, rtol=1e-6)

  def test_the_circulant_averages_five(self):
    one = np.zeros((7, 1), np.float32)
    one[3] = 1
    spread = np.array([0, 0.2, 0.2, 0.2, 0.2, 0.2, 0], np.float32)
    found = references.circulant(jnp.asarray(one), 0)
    np.testing.assert_allclose(found[:, 0], spread, rtol=1e-6)

  def test_a_sample_reads_both_ends_of_each_leaf(self):
    tree = {'a': np.arange(40.0)[None], 'b': 100 + np.arange(3.0)[None]}
    sample = references.sampled([40, 3])(np.concatenate([*tree.values()], 1))
    self.assertContainsSubset([0, 39, 100, 101, 102], sample[0].tolist())
    self.assertLess(sample.size, 30)

  def test_a_sample_differs_if_any_leaf_does(self):
    tree = {'a': _rows(8, 40), 'b': _rows(8, 3)}
    first = _gossip(tree)()
    for name in tree:
      other = {**tree, name: 2 * tree[name]}
      second = _gossip(other)()
      self.assertFalse(np.allclose(first, second), name)


class CaseTest(parameterized.TestCase):
  def test_the_tree_has_60_leaves_and_25_million_parameters(self):
    shapes = mixing.transformer_shapes(mixing.WIDTH)
    self.assertLen(shapes, 60)
    size = sum(np.prod(shape) for shape in shapes.values())
    self.assertBetween(size, 25_000_000, 25_500_000)

  def test_the_suite_has_the_cases_and_targets_it_promises(self):
    selected = suites.select('mixing')
    self.assertEqual([case.name for case in selected], NAMES)
    targets = [case.target for case in selected]
    self.assertEqual(targets, [1.1, 1.1, 1.1, 2.5, 1.5, 1.1, 1.1, 1.1, 2.0])

  def test_references_that_do_something_else_are_timed_and_not_compared(self):
    ones, zeros = (lambda: np.ones(2)), (lambda: np.zeros(2))
    contest = cases.Contest(
      ones, {'simpler': zeros}, 's', witnesses={'by hand': ones}
    )
    result = cases.measure(cases.Case('toy', 1.5, lambda: contest), 1)
    self.assertEqual(result.form, 'simpler')

  def test_a_witness_that_disagrees_is_believed(self):
    ones, zeros = (lambda: np.ones(2)), (lambda: np.zeros(2))
    contest = cases.Contest(
      ones, {'simpler': ones}, 's', witnesses={'by hand': zeros}
    )
    with self.assertRaisesRegex(ArithmeticError, "'by hand'.*numbers, up to 1"):
      cases.check_agreement('toy', contest)

  def test_compilation_is_done_anew_in_each_run(self):
    contest = mixing.compilation(workers=4, width=4)
    contest.decopt()
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(
      lambda event, *args, **kwargs: compiled.append(event)
    )
    self.addCleanup(jax.monitoring.clear_event_listeners)
    contest.decopt()
    self.assertTrue([event for event in compiled if 'compile' in event])


class FootprintTest(parameterized.TestCase):
  def test_a_row_of_bytes(self):
    found = cases.Footprint(peak=30, reference=10, form='arrays')
    row = cases.measure(cases.Case('toy', 2.5, lambda: found)).row()
    self.assertEqual(
      row,
      {
        'name': 'toy',
        'ratio': 3.0,
        'value': 30.0,
        'reference': 10.0,
        'unit': 'bytes',
      },
    )

  def test_memory_is_that_of_arrays_and_of_what_is_computed_with_them(self):
    context = multiprocessing.get_context('spawn')
    with concurrent.futures.ProcessPoolExecutor(1, context) as process:
      found = process.submit(mixing.ring_memory, 8, 256).result()
    shapes = mixing.transformer_shapes(256).values()
    stacked = 8 * 4 * sum(np.prod(shape) for shape in shapes)
    self.assertEqual(found.reference, stacked)
    # Compilation takes some 100 MB, as much as the arrays of this small tree.
    self.assertBetween(found.peak / stacked, 1.0, 4.0)

  def test_one_case_from_the_command_line(self):
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    path = pathlib.Path(folder.name) / 'mixing.json'
    command = ['mixing', '--only=logistic16', '--repeats=1', f'--json={path}']
    done = subprocess.run(
      [sys.executable, '-m', 'experiments.bench', *command],
      capture_output=True,
      text=True,
      cwd=REPOSITORY,
      check=False,
    )
    self.assertEqual(done.returncode, 0, done.stderr)
    (row,) = map(json.loads, path.read_text().splitlines())
    self.assertEqual(row['name'], 'logistic16')
    self.assertEqual(row['unit'], 'iterations/s')
    self.assertGreater(row['ratio'], 0)


def _gossip(tree):
  return cases.looped(*mixing.gossip(decopt.ring(8), tree, steps=1))


def _rows(workers, size):
  return np.random.default_rng(size).random((workers, size), np.float32)


if __name__ == '__main__':
  absltest.main()
