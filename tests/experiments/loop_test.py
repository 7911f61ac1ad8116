"""Runs in this process: what they leave behind, and what stops them."""

import contextlib
import functools
import importlib
import io
import json
import pathlib
import resource
import shutil
import signal
import tempfile
import unittest
from unittest import mock

import jax
import numpy as np
import optax
from absl.testing import absltest
from absl.testing import parameterized

from experiments import checkpoints
from experiments import errors
from experiments import loop
from experiments import run_directory
from experiments import setup
from tests.experiments import small

REPOSITORY = pathlib.Path(__file__).parents[2]
CONFIGS = sorted(path.stem for path in (REPOSITORY / 'configs').glob('*.py'))

#: `small.fields`, and shorter.
SHORT = {
  'steps': 12,
  'log_every': 2,
  'eval_every': 4,
  'checkpoint_every': 4,
  'algorithm__period': 3,
  'gradient_mapping': 'vmap',
}


@contextlib.contextmanager
def largest_file(size: int):
  """Makes writing a file beyond ``size`` bytes fail, like a full disk."""
  soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
  resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
  try:
    yield
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def setUpModule():
  # Every run compiles the same few programs.
  folder = tempfile.TemporaryDirectory()
  unittest.addModuleCleanup(folder.cleanup)
  for option, value in small.compilation_cache(folder.name).items():
    before = getattr(jax.config, option)
    jax.config.update(option, value)
    unittest.addModuleCleanup(jax.config.update, option, before)


class RunTest(parameterized.TestCase):
  """Each test has a fresh directory for its run."""

  def setUp(self):
    super().setUp()
    folder = self.enter_context(tempfile.TemporaryDirectory())
    self.workdir = pathlib.Path(folder) / 'run'
    self.printed = io.StringIO()
    self.enter_context(contextlib.redirect_stdout(self.printed))

  def train(self, resume=True, workdir=None, **overrides):
    fields = small.fields(**(SHORT | overrides))
    return loop.train(fields, workdir or self.workdir, resume=resume)

  def complete(self):
    """Copies a run that is complete, and returns its metrics."""
    shutil.copytree(complete_run(), self.workdir)
    return self.rows()

  def rows(self):
    return small.numbers(self.workdir)

  def contents(self):
    return {
      path.relative_to(self.workdir): path.read_bytes()
      for path in self.workdir.rglob('*')
      if path.is_file() and path.name != 'lock'
    }


@functools.cache
def complete_run() -> pathlib.Path:
  folder = tempfile.TemporaryDirectory()
  unittest.addModuleCleanup(folder.cleanup)
  workdir = pathlib.Path(folder.name) / 'run'
  with contextlib.redirect_stdout(io.StringIO()):
    loop.train(small.fields(**SHORT), workdir)
  return workdir


class LoopTest(RunTest):
  def test_leaves_a_directory_with_everything_documented(self):
    summary = self.train()
    saved = json.loads((self.workdir / 'summary.json').read_text())
    self.assertEqual(saved, summary)
    self.assertContainsSubset(
      {
        'steps',
        'loss_averaged',
        'accuracy_averaged',
        'accuracy_mean',
        'accuracy_worst',
        'consensus_distance',
        'bytes_sent_per_worker',
        'seconds',
      },
      summary,
    )
    self.assertEqual(summary['steps'], 12)
    rows = self.rows()
    self.assertEqual([row['step'] for row in rows], [2, 4, 6, 8, 10, 12])
    for row in rows:
      self.assertContainsSubset(row, run_directory.METRICS)
      self.assertEqual('loss_averaged' in row, row['step'] % 4 == 0)
    self.assertEqual(
      rows[-1].keys(), run_directory.METRICS.keys() - run_directory.TIMES
    )
    config = json.loads((self.workdir / 'config.json').read_text())
    self.assertEqual(config, small.fields(**SHORT))
    self.assertEqual((self.workdir / 'curves.png').read_bytes()[1:4], b'PNG')
    self.assertLen(list((self.workdir / 'tensorboard').iterdir()), 1)
    self.assertEqual(
      checkpoints.steps(self.workdir / 'checkpoints'), [4, 8, 12]
    )

  def test_prints_a_line_for_each_log_and_a_table_at_the_end(self):
    self.train()
    printed = self.printed.getvalue()
    self.assertEqual(printed.count('steps/s'), 6)
    for text in ('averaged model', 'worst worker', 'bytes sent', 'curves'):
      self.assertIn(text, printed)

  def test_counts_bytes_where_neighbours_meet(self):
    self.complete()
    sent = [row['bytes_sent_per_worker'] for row in self.rows()]
    parameters = (64 * 8 + 8) + (8 * 10 + 10)
    meetings = [step // 3 for step in (2, 4, 6, 8, 10, 12)]
    self.assertEqual(sent, [4 * parameters * times for times in meetings])

  @parameterized.named_parameters(
    ('unrolled', {'gradient_mapping': 'unrolled'}),
    ('mesh', {'layout': 'mesh', 'devices': 4}),
    ('packed_mesh', {'layout': 'mesh', 'devices': 2}),
  )
  def test_layouts_give_the_same_numbers(self, layout):
    simulated = small.numbers(complete_run())
    self.train(**layout)
    for row, other in zip(simulated, self.rows(), strict=True):
      self.assertEqual(row.keys(), other.keys())
      for name, value in row.items():
        np.testing.assert_allclose(
          value, other[name], rtol=1e-4, atol=1e-6, err_msg=name
        )

  def test_one_worker_is_plain_optax(self):
    overrides = {'workers': 1, 'checkpoint_every': 12}
    summary = self.train(**overrides)
    self.assertEqual(summary['consensus_distance'], 0)
    self.assertEqual(summary['bytes_sent_per_worker'], 0)
    experiment = setup.build(small.fields(**(SHORT | overrides)))
    workload = experiment.workload
    params, _ = workload.init(jax.random.key(0))
    optimizer = optax.adam(3e-3)
    state = optimizer.init(params)
    gradient = jax.jit(jax.grad(lambda *args: workload.loss(*args)[0]))
    for indices in experiment.order.indices(0, 12)[0]:
      batch = {name: x[indices] for name, x in workload.train.items()}
      grads = gradient(params, {}, batch, jax.random.key(0))
      updates, state = optimizer.update(grads, state)
      params = optax.apply_updates(params, updates)
    loss = workload.evaluate(params, {}, workload.test)['loss']
    np.testing.assert_allclose(loss, summary['loss_averaged'], rtol=1e-5)

  @parameterized.parameters(*CONFIGS)
  def test_every_config_runs_for_one_step(self, name):
    config = importlib.import_module(f'configs.{name}')
    fields = small.resolved(
      config.get_config(), {'steps': 1, 'gradient_mapping': 'vmap'}
    )
    summary = loop.train(fields, self.workdir)
    self.assertEqual(summary['steps'], 1)
    self.assertTrue(np.isfinite(summary['loss_averaged']))

  @parameterized.parameters('local', 'averaged')
  def test_batch_statistics_are_local_or_averaged(self, choice):
    summary = self.train(
      workload__model='convnet',
      workload__channels=(2,),
      workload__norm='batch',
      steps=2,
      batch_statistics=choice,
    )
    self.assertTrue(np.isfinite(summary['loss_averaged']))


class ResumeTest(RunTest):
  def test_a_complete_run_is_shown_again_and_not_touched(self):
    self.complete()
    before = self.contents()
    summary = self.train()
    self.assertEqual(
      summary, json.loads((self.workdir / 'summary.json').read_text())
    )
    self.assertIn('is complete', self.printed.getvalue())
    self.assertEqual(self.contents(), before)

  def test_another_config_is_refused_with_the_fields_that_differ(self):
    self.complete()
    before = self.contents()
    with self.assertRaisesRegex(
      errors.UserError, 'optimizer.learning_rate is 0.003 there and 0.1 here'
    ):
      self.train(optimizer__learning_rate=0.1)
    self.assertEqual(self.contents(), before)

  def test_noresume_refuses_a_directory_with_a_run(self):
    self.complete()
    with self.assertRaisesRegex(errors.UserError, 'noresume'):
      self.train(resume=False)

  def test_a_directory_with_other_things_is_refused(self):
    self.workdir.mkdir()
    (self.workdir / 'thesis.tex').write_text('precious')
    with self.assertRaisesRegex(errors.UserError, "'thesis.tex' is there"):
      self.train()
    self.assertEqual(list(self.contents().values()), [b'precious'])

  def test_a_mistake_leaves_no_directory(self):
    with self.assertRaisesRegex(errors.UserError, 'did you mean'):
      self.train(topology__name='one_peer_exponentail')
    self.assertFalse(self.workdir.exists())

  def test_a_second_process_is_refused(self):
    fields = small.fields(**SHORT)
    directory = run_directory.RunDirectory(self.workdir, fields)
    with directory.locked():
      with self.assertRaisesRegex(errors.UserError, r'in use by process \d+'):
        self.train()

  def damaged(self, *steps):
    """Makes a run that lacks its end, with checkpoints that are damaged."""
    self.complete()
    (self.workdir / 'summary.json').unlink()
    rows = self.rows()
    for step in steps:
      path = self.workdir / 'checkpoints' / str(step) / 'arrays'
      largest = max((path / 'd').iterdir(), key=lambda p: p.stat().st_size)
      largest.write_bytes(largest.read_bytes()[:-20])
    return rows

  def test_a_truncated_checkpoint_falls_back_to_the_one_before(self):
    rows = self.damaged(12, 8)
    self.train()
    printed = self.printed.getvalue()
    self.assertRegex(printed, r'checkpoint 12 cannot be used \(.+\)')
    self.assertIn('going back to 4', printed)
    self.assertEqual(self.rows(), rows)

  def test_a_foreign_checkpoint_falls_back_to_the_one_before(self):
    rows = self.damaged()
    foreign = self.workdir.parent / 'foreign'
    self.train(workdir=foreign, workload__hidden=4)
    (self.workdir / 'checkpoints' / '12').rename(self.workdir.parent / 'aside')
    (foreign / 'checkpoints' / '12').rename(self.workdir / 'checkpoints' / '12')
    self.train()
    self.assertRegex(
      self.printed.getvalue(),
      'checkpoint 12 cannot be used .it is of another config: workload.hidden',
    )
    self.assertEqual(self.rows(), rows)

  def test_without_a_usable_checkpoint_it_stops_and_deletes_nothing(self):
    self.damaged(4, 8, 12)
    before = self.contents()
    with self.assertRaisesRegex(errors.UserError, 'none of the checkpoints'):
      self.train()
    self.assertEqual(self.contents(), before)

  def test_a_torn_last_line_of_metrics_is_dropped(self):
    rows = self.damaged()
    with open(self.workdir / 'metrics.jsonl', 'a') as file:
      file.write('{"step": 14, "lo')
    self.train()
    self.assertEqual(self.rows(), rows)


class StopTest(RunTest):
  def test_an_interruption_waits_for_the_end_of_a_dispatch(self):
    with loop.interruptions() as interrupted:
      self.assertFalse(interrupted())
      signal.raise_signal(signal.SIGINT)
      self.assertTrue(interrupted())
      with self.assertRaises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)

  def test_an_interrupted_run_continues(self):
    always = mock.patch.object(
      loop,
      'interruptions',
      return_value=contextlib.nullcontext(lambda: True),
    )
    with always, self.assertRaises(KeyboardInterrupt):
      self.train()
    self.train()
    interrupted = self.rows()
    shutil.rmtree(self.workdir)
    self.assertEqual(interrupted, self.complete())

  def test_nan_stops_with_step_worker_checkpoint_and_advice(self):
    with self.assertRaisesRegex(
      errors.UserError,
      r'step \d+: the loss of worker \d is (NaN|infinite)\. There is no '
      r'checkpoint yet\. Lower optimizer\.learning_rate \(1e\+30\)',
    ):
      self.train(optimizer__name='sgd', optimizer__learning_rate=1e30)
    self.assertFalse((self.workdir / 'checkpoints').exists())

  def test_nan_keeps_the_last_good_checkpoint_and_metrics(self):
    # The learning rate explodes after step 10.
    with self.assertRaisesRegex(
      errors.UserError,
      r'step 12: the loss of worker \d is .* Last good checkpoint: step 8 ',
    ):
      self.train(
        optimizer__name='sgd',
        optimizer__learning_rate=0.01,
        optimizer__schedule__name='piecewise_constant_schedule',
        optimizer__schedule__boundaries_and_scales={'10': 1e30},
      )
    self.assertEqual(checkpoints.steps(self.workdir / 'checkpoints'), [4, 8])
    self.assertEqual([row['step'] for row in self.rows()], [2, 4, 6, 8, 10])

  def test_a_full_disk_while_saving_names_path_and_checkpoint(self):
    self.train(steps=4, checkpoint_every=4)
    size = max(
      path.stat().st_size for path in (self.workdir / 'checkpoints').rglob('*')
    )
    workdir = self.workdir.parent / 'full'
    with largest_file(size // 2):
      with self.assertRaisesRegex(
        errors.UserError,
        r'cannot write .*full/checkpoints.* There is no checkpoint yet.*disk',
      ):
        self.train(workdir=workdir)
    self.assertEqual(checkpoints.steps(workdir / 'checkpoints'), [])
    self.train(workdir=workdir)  # room again
    self.assertEqual(checkpoints.steps(workdir / 'checkpoints'), [4, 8, 12])

  def test_a_full_disk_at_the_end_harms_nothing_that_is_written(self):
    with largest_file(50_000):
      with self.assertRaisesRegex(
        errors.UserError, r'cannot write .*curves.png.* checkpoint: step 12'
      ):
        self.train()
    self.assertFalse((self.workdir / 'summary.json').exists())
    self.train()
    self.assertEqual(self.rows(), small.numbers(complete_run()))
    self.assertTrue((self.workdir / 'summary.json').exists())


if __name__ == '__main__':
  absltest.main()
