"""The training loop: from a resolved config to a finished run directory.

Top to bottom: `train` decides whether there is something to do, `_run` trains,
`_reach` is what happens at a step where something is due, `_finish` draws and
sums up. On several processes all of them do this together; the first one looks
at the directory, writes and speaks (`experiments.processes`).
"""

import contextlib
import errno
import math
import os
import signal
import threading
from collections.abc import Mapping
from typing import Any

import jax

import decopt
from experiments import checkpoints
from experiments import display
from experiments import errors
from experiments import evaluation
from experiments import layouts
from experiments import processes
from experiments import run_directory
from experiments import setup
from experiments import step as step_lib
from experiments.progress import Progress

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def train(
  fields: Mapping[str, Any], workdir: str, *, resume: bool = True
) -> dict[str, Any]:
  """Runs a config to its last step, or continues it, and returns the summary.

  Args:
    fields: the resolved config, see `experiments.config.resolve`.
    workdir: the run directory. If it holds a run of this config, that one
      continues; if it is complete, its summary is shown again.
    resume: whether a directory that holds a run is acceptable at all.

  Returns:
    What ``summary.json`` holds.

  Raises:
    UserError: if the config cannot be built, the directory is not free for it,
      the disk is full, or the loss becomes NaN.
  """
  directory = run_directory.RunDirectory(workdir, fields)

  def look():
    directory.check(resume)
    return directory.finished()

  processes.require_same('config', fields)
  summary = processes.decide(look)
  if summary is not None:
    display.say(f'{directory.path} is complete')
    display.show_summary(summary, directory.curves)
    return summary
  experiment = setup.build(fields)
  with contextlib.ExitStack() as stack:
    stack.enter_context(explained(directory))
    processes.decide(lambda: _enter(stack, directory.locked()))
    for line in experiment.describe():
      display.say(line)
    display.say(f'run directory {directory.path}')
    return _run(experiment, directory)


def _enter(stack, context) -> None:
  stack.enter_context(context)


def _run(experiment, directory) -> dict[str, Any]:
  """Trains from the newest checkpoint, or from the start, to the last step."""
  fields, mesh = experiment.fields, experiment.layout.mesh
  steps, chunk = fields['steps'], experiment.chunk
  measures = evaluation.Measures(experiment)
  program = experiment.program
  state, progress = _start(experiment, directory)
  data = layouts.share(experiment.workload.train, mesh)
  throttle = decopt.Throttle()
  with contextlib.ExitStack() as stack:
    interrupted = stack.enter_context(interruptions())
    screen = stack.enter_context(display.Display(steps, progress.step))
    recorder = Recorder(directory, screen, progress.step)
    stack.callback(recorder.close)
    for first in range(progress.step, steps, chunk):
      indices = layouts.share(experiment.order.indices(first, chunk), mesh)
      state, losses = program.run(state, data, indices, first)
      progress.dispatched(throttle.admit(losses), chunk)
      screen.advance(progress.step)
      _reach(experiment, directory, recorder, measures, state, progress)
      if interrupted():
        raise KeyboardInterrupt
  return processes.decide(lambda: _finish(experiment, directory))


def _start(experiment, directory):
  """Returns state and progress of the newest usable checkpoint."""
  fields = experiment.fields
  fresh = step_lib.init_state(
    experiment.workload,
    experiment.optimizer,
    workers=experiment.workers,
    mesh=experiment.layout.mesh,
    seed=fields['seed'],
  )
  stacked, saved, notes = checkpoints.restore(
    directory.checkpoints, fresh, fields
  )
  progress = Progress(experiment.workers, saved)
  for note in notes:
    display.say(note)
  if saved is not None:
    directory.saved_step = progress.step
    display.say(f'continuing after step {progress.step}')
  if processes.is_first():
    directory.rewind(progress.step)
  if progress.step < fields['steps']:
    display.say(f'compiling a program of {experiment.chunk} step(s) ...')
  return experiment.program.enter(stacked), progress


def _reach(experiment, directory, recorder, measures, state, progress) -> None:
  """Logs, evaluates and saves what is due at this step."""
  fields, step = experiment.fields, progress.step
  log, evaluate, save = (
    step == fields['steps'] or (every and step % every == 0)
    for every in (
      fields['log_every'],
      fields['eval_every'],
      fields['checkpoint_every'],
    )
  )
  if not (log or evaluate or save):
    return
  progress.settle(state)
  distance, broken = measures.health(state)
  problem = progress.not_finite()
  if broken and not problem:
    problem = f'step {step}: parameters of worker {broken[0]} are not finite'
  if log or evaluate:
    row = progress.report()
    row['consensus_distance'] = distance
    row['bytes_sent_per_worker'] = experiment.bytes_sent[step - 1]
    if evaluate:
      row |= measures.held_out(state)
    odd = [name for name, value in row.items() if not math.isfinite(value)]
    if odd and not problem:
      problem = f'step {step}: {odd[0]} is not finite'
  if problem:
    raise errors.UserError(
      f'{problem}. {last_checkpoint(directory)}. {_advice(fields)}', code=1
    )
  if log or evaluate:
    recorder.record(row)
  if save:
    recorder.flush()
    stacked = jax.jit(experiment.program.leave)(state)
    checkpoints.save(directory.checkpoints, stacked, progress.saved(), fields)
    directory.saved_step = step
  progress.resume()


def _finish(experiment, directory) -> dict[str, Any]:
  """Draws the curves and writes and shows the summary."""
  # Imported late, as it is not needed before.
  from experiments import plots

  rows = directory.read_metrics()
  title = experiment.describe()[0]
  run_directory.write_atomically(directory.curves, plots.curves(rows, title))
  summary = {**experiment.facts(), **rows[-1]}
  summary['steps'] = summary.pop('step')
  summary['steps_per_second'] = summary['steps'] / summary['seconds']
  directory.write_summary(summary)
  display.show_summary(summary, directory.curves)
  return summary


class Recorder:
  """Sends rows of metrics to the file, to TensorBoard and to the screen."""

  def __init__(self, directory, screen, step: int):
    self._directory = directory
    self._screen = screen
    self._step = step
    self._events = None

  def record(self, row: Mapping[str, Any]) -> None:
    if not processes.is_first():
      return
    # In the documented order, and nothing that is not documented.
    row = {name: row[name] for name in run_directory.METRICS if name in row}
    self._directory.append_metrics(row)
    if self._events is None:
      # Imported late: its libraries are not needed before the first step.
      from experiments import tensorboard

      self._events = tensorboard.Writer(self._directory.tensorboard, self._step)
    self._events.scalars(row)
    self._screen.report(row)

  def flush(self) -> None:
    if self._events is not None:
      self._events.flush()

  def close(self) -> None:
    if self._events is not None:
      self._events.close()


@contextlib.contextmanager
def interruptions():
  """Holds back a first Ctrl-C, and gives a function that says if one came.

  In the middle of a checkpoint, or in a callback of jax, an exception is
  swallowed or answered with somebody else's traceback. A second Ctrl-C is not
  held back.
  """
  came = []

  def note(number, frame):
    del number, frame
    came.append(True)
    signal.signal(signal.SIGINT, before)

  # Only a main thread may choose, as the one of the binary is.
  if threading.current_thread() is not threading.main_thread():
    yield lambda: False
    return
  before = signal.signal(signal.SIGINT, note)
  try:
    yield lambda: bool(came)
  finally:
    signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def explained(directory):
  """Turns a full disk, and other refusals to write, into one line."""
  try:
    yield
  except OSError as error:
    place = str(error.filename or '')
    if not place.startswith(str(directory.path)):
      raise
    remedy = 'repair that, and the same command continues'
    if error.errno in _FULL:
      remedy = 'the disk is full: make room, and the same command continues'
    raise errors.UserError(
      f'cannot write {place}: {os.strerror(error.errno)}. '
      f'{last_checkpoint(directory)}. Nothing already written is lost; '
      f'{remedy}',
      code=1,
    ) from error


def last_checkpoint(directory) -> str:
  """Says where the newest checkpoint of a run is."""
  step = directory.saved_step
  if step is None:
    return 'There is no checkpoint yet'
  return (
    f'Last good checkpoint: step {step} ({directory.checkpoints / str(step)})'
  )


def _advice(fields: Mapping[str, Any]) -> str:
  rate = fields['optimizer']['learning_rate']
  return (
    f'Lower optimizer.learning_rate ({rate:g}), for example '
    f'--config.optimizer.learning_rate={rate / 10:g}, or clip the gradients: '
    '--config.optimizer.clip_norm=1; either is a new run and needs another '
    '--workdir'
  )
