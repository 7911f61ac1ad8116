"""Runs on several local processes, with real sockets and real signals."""

import json
import os
import pathlib
import shutil
import signal
import socket
import sys
import tempfile
import time
from unittest import mock

import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

from experiments import checkpoints
from experiments import liveness
from experiments import loop
from experiments import processes
from tests.experiments import several
from tests.experiments import small


def free_port() -> int:
  with socket.create_server(('localhost', 0)) as server:
    return server.getsockname()[1]


def flags(count, index, port):
  return (
    f'--coordinator=localhost:{port}',
    f'--num_processes={count}',
    f'--process_id={index}',
  )


def finished(team, timeout=240):
  """Waits for processes; returns exit code, output and errors of each."""
  try:
    return [small.finish(process, timeout) for process in team]
  finally:
    for process in team:
      process.kill()


class SameCurveTest(parameterized.TestCase):
  """Several processes train as one does, to float order."""

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    folder = tempfile.TemporaryDirectory()
    cls.addClassCleanup(folder.cleanup)
    cls.folder = pathlib.Path(folder.name)
    cls.outcomes = {count: cls._train(count) for count in (2, 4)}
    for name in several.ALGORITHMS:
      alone = several.fields(name, layout='simulation')
      loop.train(alone, str(cls.folder / '1' / name))

  @classmethod
  def _train(cls, count):
    command = [sys.executable, '-m', 'tests.experiments.several']
    where = [str(cls.folder / str(count)), f'localhost:{free_port()}']
    team = [
      small.start([*command, *where, str(count), str(index)])
      for index in range(count)
    ]
    return finished(team)

  def test_all_end_well_and_one_speaks(self):
    for outcome in self.outcomes.values():
      for index, (code, output, errors) in enumerate(outcome):
        self.assertEqual(code, 0, errors)
        self.assertEqual('averaged model' in output, index == 0)
        self.assertEqual('step' in output, index == 0, output)

  @parameterized.product(count=(2, 4), name=tuple(several.ALGORITHMS))
  def test_curve_is_that_of_one_process(self, count, name):
    one, many = (
      small.numbers(self.folder / str(number) / name) for number in (1, count)
    )
    self.assertEqual([row['step'] for row in many], [5, 10, 15, 20])
    for mine, theirs in zip(many, one, strict=True):
      self.assertEqual(mine.keys(), theirs.keys())
      for key, value in mine.items():
        np.testing.assert_allclose(value, theirs[key], rtol=2e-4, err_msg=key)

  def test_things_are_written_once(self):
    run = self.folder / '4' / 'dsgd'
    self.assertLen((run / 'metrics.jsonl').read_text().splitlines(), 4)
    self.assertLen(list((run / 'tensorboard').iterdir()), 1)
    self.assertEqual(checkpoints.steps(run / 'checkpoints'), [10, 20])

  @parameterized.named_parameters(
    ('simulation', {'layout': 'simulation'}),
    ('packed_mesh', {'layout': 'mesh', 'devices': 2}),
  )
  def test_a_checkpoint_of_four_continues_in_one(self, layout):
    for name in several.ALGORITHMS:
      moved = self.folder / f'moved {name} {layout["layout"]}'
      shutil.copytree(self.folder / '4' / name, moved)
      shutil.rmtree(moved / 'checkpoints' / '20')
      (moved / 'summary.json').unlink()
      loop.train(several.fields(name, **layout), str(moved))
      rows = small.numbers(moved)
      whole = small.numbers(self.folder / '1' / name)
      for mine, theirs in zip(rows, whole, strict=True):
        for key, value in mine.items():
          np.testing.assert_allclose(value, theirs[key], rtol=2e-4)


class StartTest(parameterized.TestCase):
  def test_processes_that_do_not_come_are_not_waited_for_for_ever(self):
    with (
      mock.patch.object(processes, 'START', 0.05),
      mock.patch.object(liveness, 'end_process') as end,
    ):
      with processes._deadline('there:80', '3'):
        time.sleep(0.3)
      with processes._deadline('there:80', '3'):
        pass
      time.sleep(0.3)
    end.assert_called_once()
    (reason,) = end.call_args.args
    self.assertIn('not all of 3 processes have come to there:80', reason)


class LossTest(parameterized.TestCase):
  """The binary: a process that dies ends the others, which name it."""

  def setUp(self):
    super().setUp()
    folder = self.enter_context(tempfile.TemporaryDirectory())
    self.folder = pathlib.Path(folder)
    self.run_directory = self.folder / 'run'

  def _start(self, count=2, **overrides):
    port = free_port()
    options = {'devices': 2 * count, 'workers': 8, **overrides}
    return [
      small.start(
        small.command(self.run_directory, *flags(count, index, port), **options)
      )
      for index in range(count)
    ]

  @parameterized.named_parameters(('first', 0), ('second', 1))
  def test_a_killed_process_is_named_and_the_same_command_resumes(self, victim):
    team = self._start(steps=6000, checkpoint_every=50, log_every=50)
    self._wait_for(self.run_directory / 'checkpoints' / '100', team)
    team[victim].send_signal(signal.SIGKILL)
    start = time.monotonic()
    code, _, errors = small.finish(team[1 - victim])
    self.assertLess(time.monotonic() - start, 10)
    self.assertNotEqual(code, 0)
    self.assertIn(f'error: process {victim} died; start all', errors)
    small.finish(team[victim])
    # A run of another length is another config, so what is left is shortened.
    config = self.run_directory / 'config.json'
    saved = json.loads(config.read_text())
    steps = checkpoints.steps(self.run_directory / 'checkpoints')[-1] + 50
    for manifest in self.run_directory.glob('checkpoints/*/manifest.json'):
      text = json.loads(manifest.read_text())
      text['config']['steps'] = steps
      manifest.write_text(json.dumps(text))
    config.write_text(json.dumps(saved | {'steps': steps}))
    again = self._start(steps=steps, checkpoint_every=50, log_every=50)
    outcomes = finished(again)
    for code, _, errors in outcomes:
      self.assertEqual(code, 0, errors)
    self.assertIn(f'continuing after step {steps - 50}', outcomes[0][1])
    rows = small.numbers(self.run_directory)
    self.assertEqual([row['step'] for row in rows][-1], steps)

  def test_a_mistake_is_told_by_all_and_none_waits(self):
    (self.run_directory).mkdir()
    (self.run_directory / 'precious').write_text('mine')
    for code, _, errors in finished(self._start()):
      self.assertEqual(code, 2, errors)
      self.assertIn('not empty and holds no run', errors)
      self.assertNotIn('Traceback', errors)

  def test_flags_that_do_not_fit_together_are_one_line(self):
    command = small.command(self.run_directory)
    cases = {
      'needs --coordinator': ['--num_processes=2', '--process_id=0'],
      '--process_id is None': ['--num_processes=2', '--coordinator=here:80'],
      'one of 0 to 1': flags(2, 2, 80),
      'must be a number, or auto': ['--num_processes=two'],
    }
    team = [small.start([*command, *given]) for given in cases.values()]
    for text, (code, _, errors) in zip(cases, finished(team), strict=True):
      self.assertEqual(code, 2)
      self.assertIn(text, errors)
      self.assertEqual(errors.count('\n'), 1, errors)

  def test_srun_needs_no_flags(self):
    # What it puts into the environment; jax takes the rest from there.
    shared = {
      'SLURM_JOB_ID': str(os.getpid()),
      'SLURM_STEP_NODELIST': 'localhost',
      'SLURM_NTASKS': '2',
      'SLURM_STEP_NUM_TASKS': '2',
      'SLURM_STEP_NUM_NODES': '1',
    }
    team = [
      small.start(
        small.command(self.run_directory, workers=8, devices=4, steps=10),
        environment={
          **shared,
          'SLURM_PROCID': str(index),
          'SLURM_LOCALID': str(index),
        },
      )
      for index in range(2)
    ]
    outcomes = finished(team)
    for code, _, errors in outcomes:
      self.assertEqual(code, 0, errors)
    self.assertIn('mesh of 4 cpu device(s) of 2 processes', outcomes[0][1])

  def _wait_for(self, path, team):
    deadline = time.monotonic() + 120
    while not path.exists():
      self.assertLess(time.monotonic(), deadline)
      for process in team:
        if process.poll() is not None:
          self.fail(f'ended early: {process.stderr.read()}')
      time.sleep(0.01)


if __name__ == '__main__':
  absltest.main()
