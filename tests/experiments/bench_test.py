"""The bench: its clockwork with a clock of our own, its programs for real."""

import functools
import json
import pathlib
import subprocess
import sys
import tempfile

import jax
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

from experiments import errors
from experiments import workloads
from experiments.bench import cases
from experiments.bench import core
from experiments.bench import mesh_references
from experiments.bench import models
from experiments.bench import references
from experiments.bench import startup
from experiments.bench import suites
from experiments.bench import timing

REPOSITORY = pathlib.Path(__file__).parents[2]


class FakeClock:
  """A clock that only programs advance, and that remembers which did."""

  def __init__(self):
    self.now = 0.0
    self.log = []

  def __call__(self):
    return self.now

  def program(self, name, seconds):
    """A program that takes ``seconds()``."""

    def run():
      self.log.append(name)
      self.now += seconds()

    return run


class TimingTest(parameterized.TestCase):
  def test_ratio_is_our_time_over_theirs(self):
    clock = FakeClock()
    ours = clock.program('ours', lambda: 3.0)
    theirs = clock.program('theirs', lambda: 2.0)
    found = timing.compare(ours, theirs, repeats=4, clock=clock)
    self.assertEqual(found, timing.Timing(1.5, 3.0, 2.0))

  def test_the_two_take_turns_in_an_order_that_mirrors_itself(self):
    clock = FakeClock()
    ours = clock.program('a', lambda: 1.0)
    theirs = clock.program('b', lambda: 1.0)
    timing.compare(ours, theirs, repeats=2, clock=clock)
    self.assertEqual(''.join(clock.log), 'abbaabba')

  def test_a_machine_that_slows_down_steadily_does_not_change_the_ratio(self):
    clock = FakeClock()

    def slower():
      return 1.0 + 0.1 * len(clock.log)

    ours, theirs = clock.program('a', slower), clock.program('b', slower)
    found = timing.compare(ours, theirs, repeats=5, clock=clock)
    self.assertAlmostEqual(found.ratio, 1.0)

  def test_a_few_disturbed_repetitions_do_not_change_the_ratio(self):
    clock = FakeClock()

    def disturbed():
      return 9.0 if len(clock.log) in (1, 8) else 1.0

    ours = clock.program('a', disturbed)
    theirs = clock.program('b', lambda: 1.0)
    found = timing.compare(ours, theirs, repeats=5, clock=clock)
    self.assertEqual(found, timing.Timing(1.0, 1.0, 1.0))

  def test_shortest_times_are_those_of_each_program(self):
    clock = FakeClock()
    times = iter([5.0, 1.0, 7.0])
    programs = {
      'even': clock.program('even', lambda: 2.0),
      'uneven': clock.program('uneven', lambda: next(times)),
    }
    found = timing.shortest(programs, repeats=3, clock=clock)
    self.assertEqual(found, {'even': 2.0, 'uneven': 1.0})
    self.assertEqual(clock.log, ['even', 'uneven'] * 3)

  def test_no_repetition_is_refused(self):
    with self.assertRaisesRegex(ValueError, 'repeats is 0'):
      timing.compare(lambda: None, lambda: None, repeats=0)


class CaseTest(parameterized.TestCase):
  def test_the_fastest_form_is_the_reference(self):
    result = cases.measure(_case(spins={'slow': 200_000, 'quick': 10}), 1)
    self.assertEqual(result.form, 'quick')
    self.assertEqual(list(result.others), ['slow'])
    self.assertGreater(result.others['slow'], 1.0)

  def test_a_line_of_json_has_five_fields(self):
    row = cases.measure(_case(), 1).row()
    self.assertEqual(list(row), ['name', 'ratio', 'value', 'reference', 'unit'])
    self.assertEqual(json.loads(json.dumps(row)), row)

  def test_values_are_work_per_second_or_seconds(self):
    contest = cases.Contest(lambda: np.zeros(1), {}, 'things/s', amount=6.0)
    self.assertEqual(contest.value(seconds=2.0), 3.0)
    contest = cases.Contest(lambda: np.zeros(1), {}, 's')
    self.assertEqual(contest.value(seconds=2.0), 2.0)

  def test_programs_that_compute_something_else_are_not_timed(self):
    with self.assertRaisesRegex(ArithmeticError, "'toy'.*'quick'.* 0.01"):
      cases.measure(_case(error=0.01), 1)

  def test_programs_with_other_shapes_are_not_timed(self):
    contest = cases.Contest(
      lambda: np.zeros((2, 3)), {'by hand': lambda: np.zeros((2, 1))}, 's'
    )
    with self.assertRaisesRegex(ArithmeticError, r'\(2, 3\).*\(2, 1\)'):
      cases.check_agreement('toy', contest)

  def test_nan_is_no_agreement(self):
    contest = cases.Contest(
      lambda: np.full(2, np.nan), {'by hand': lambda: np.zeros(2)}, 's'
    )
    with self.assertRaises(ArithmeticError):
      cases.check_agreement('toy', contest)

  def test_a_program_goes_on_from_where_it_was(self):
    step = jax.jit(lambda x, by: (x + by, 2 * x), donate_argnums=0)
    program = cases.looped(step, jax.numpy.float32(1), 3.0)
    self.assertEqual([float(program()) for _ in range(3)], [2.0, 8.0, 14.0])


class ReferenceTest(parameterized.TestCase):
  """The hand-written programs compute what decopt computes."""

  @parameterized.named_parameters(('vmap', 'vmap', 5), ('auto', 'auto', 3))
  def test_mlp_in_every_form(self, mapping, workers):
    contest = _tiny(workers, mapping=mapping, forms=core.ALL)
    self.assertLen(contest.references, 3)
    cases.check_agreement('mlp', contest)

  def test_convnet(self):
    contest = core.gossip(
      lambda: core.convnet_workload(side=8),
      models.convnet_loss,
      workers=3,
      forms={'leaves': references.leaves},
      batch=4,
      steps=3,
    )
    cases.check_agreement('convnet', contest)

  def test_transformer(self):
    text = functools.partial(workloads.WORKLOADS['text'][0], heads=2)
    contest = core.gossip(
      lambda: text(context=8, width=8, layers=2, corpus_bytes=200_000),
      functools.partial(models.transformer_loss, heads=2),
      workers=3,
      forms={'leaves': references.leaves},
      batch=4,
      steps=3,
    )
    cases.check_agreement('transformer', contest)

  def test_all_reduce(self):
    cases.check_agreement('all_reduce', core.all_reduce(workers=3, steps=3))

  def test_mesh_in_every_form(self):
    cases.check_agreement('mesh', core.mesh(steps=3))

  def test_a_form_that_forgets_to_mix_is_found_out(self):
    def alone(loss, params, workers, rate):
      del workers
      # A ring of one worker: each reads itself from both sides.
      run, state = references.leaves(loss, params, 1, rate)
      return (lambda s, data, rows: run(s, data, rows[:1])), state

    contest = _tiny(3, forms={'alone': alone})
    first = cases.Contest(lambda: contest.decopt()[:1], contest.references, '')
    with self.assertRaisesRegex(ArithmeticError, "'alone'"):
      cases.check_agreement('test', first)

  def test_packing_is_undone(self):
    tree = {'a': np.ones((2, 3), np.float32), 'b': np.zeros(4, np.float32)}
    flat = references.pack(tree)
    self.assertEqual(flat.shape, (10,))
    jax.tree.map(
      np.testing.assert_array_equal, references.unpack(flat, tree), tree
    )

  def test_the_mesh_is_for_two_workers(self):
    with self.assertRaisesRegex(ValueError, 'workers=3'):
      mesh_references.flat(models.mlp_loss, {}, workers=3, rate=0.1)


class CommandTest(parameterized.TestCase):
  def test_both_programs_of_startup_take_the_same_step(self):
    contest = startup.contest()
    cases.check_agreement('startup', contest)
    self.assertLen(contest.decopt(), 8)

  def test_one_case_from_the_command_line(self):
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    path = pathlib.Path(folder.name) / 'bench.json'
    done = _command('core', '--only=mlp2_mesh', '--repeats=1', f'--json={path}')
    self.assertEqual(done.returncode, 0, done.stderr)
    self.assertIn('mlp2_mesh', done.stdout)
    (line,) = path.read_text().splitlines()
    row = json.loads(line)
    self.assertEqual(row['name'], 'mlp2_mesh')
    self.assertEqual(row['unit'], 'worker-steps/s')
    self.assertGreater(row['ratio'], 0)

  def test_cases_keep_their_order_and_unknown_ones_are_named(self):
    chosen = suites.select('core', ['mlp64', 'mlp16'])
    self.assertEqual([case.name for case in chosen], ['mlp16', 'mlp64'])
    with self.assertRaisesRegex(errors.UserError, "did you mean 'mlp16'"):
      suites.select('core', ['mpl16'])
    with self.assertRaisesRegex(errors.UserError, "did you mean 'core'"):
      suites.select('cor')

  def test_the_suite_has_the_cases_it_promises(self):
    names = [case.name for case in suites.select('core')]
    for name in (
      'mlp16',
      'mlp64',
      'transformer8',
      'mlp2_mesh',
      'convnet8',
      'all_reduce8',
      'startup',
    ):
      self.assertIn(name, names)


def _case(spins=None, error=0.0):
  """A case of toy programs: forms that spin so often, and are so wrong."""

  def program(count, result):
    return lambda: np.full(2, result) + 0.0 * sum(range(count))

  forms = {name: program(n, 1.0) for name, n in (spins or {}).items()}
  forms.setdefault('quick', program(10, 1.0 + error))
  contest = cases.Contest(program(10, 1.0), forms, 'runs/s', amount=1.0)
  return cases.Case('toy', 1.05, lambda: contest)


def _tiny(workers, **options):
  """Gossip SGD of a perceptron with 5 hidden units."""
  return core.gossip(
    lambda: core.mlp_workload(pixels=6, hidden=5),
    models.mlp_loss,
    workers,
    batch=4,
    steps=3,
    **options,
  )


def _command(*arguments):
  return subprocess.run(
    [sys.executable, '-m', 'experiments.bench', *arguments],
    capture_output=True,
    text=True,
    cwd=REPOSITORY,
    check=False,
  )


if __name__ == '__main__':
  absltest.main()
