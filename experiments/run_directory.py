"""The directory of one run: what is in it, and who may write it.

  config.json      the config with all overrides
  metrics.jsonl    one JSON object a line, see `METRICS`
  tensorboard/     the same numbers as TensorBoard events
  checkpoints/     see `experiments.checkpoints`
  curves.png       loss, accuracy and consensus distance
  summary.json     the last metrics, written when the run is complete
  lock             held by the process that is running

Files are replaced atomically or appended to, so that a run killed at any moment
leaves a directory from which the same command continues.
"""

import contextlib
import fcntl
import json
import os
import pathlib
from collections.abc import Mapping
from typing import Any

from experiments import config as config_lib
from experiments import errors

#: The fields of a line of ``metrics.jsonl``. Those of a mean over workers and
#: steps cover the steps since the line before; those of held-out examples are
#: in the lines of evaluation steps. Times are the only fields that differ
#: between a run that was interrupted and one that was not.
METRICS = {
  'step': 'steps done by each worker',
  'loss': 'training loss, mean over workers and steps',
  'loss_worst_worker': 'training loss of the worst worker, mean over steps',
  'consensus_distance': 'root mean square over workers of the Euclidean '
  "distance between a worker's parameters and their mean",
  'bytes_sent_per_worker': 'bytes since step 0, mean over workers',
  'gradient_evaluations': 'batches since step 0, sum over workers',
  'loss_averaged': 'held-out loss of the averaged model',
  'accuracy_averaged': 'held-out accuracy of the averaged model, 0 to 1',
  'loss_mean': 'held-out loss, mean over workers',
  'accuracy_mean': 'held-out accuracy, mean over workers, 0 to 1',
  'loss_worst': 'held-out loss of the worst worker',
  'accuracy_worst': 'held-out accuracy of the worst worker, 0 to 1',
  'seconds': 'of training since step 0, without compilation and evaluation',
  'steps_per_second': 'steps of training a second, since the line before',
}

#: Fields of a config that say how a run is executed, not what it computes. A
#: run may go on with others than it began with; ``config.json`` has the first.
EXECUTION = ('devices', 'gradient_mapping', 'layout')

#: The fields of METRICS that are times.
TIMES = ('seconds', 'steps_per_second')


class RunDirectory:
  """Paths, metrics and summary of one run.

  Args:
    path: of the directory, which need not exist.
    fields: the resolved config.
  """

  def __init__(self, path: str | os.PathLike, fields: Mapping[str, Any]):
    self.path = pathlib.Path(path).absolute()
    self.fields = fields
    self.config = self.path / 'config.json'
    self.metrics = self.path / 'metrics.jsonl'
    self.summary = self.path / 'summary.json'
    self.curves = self.path / 'curves.png'
    self.checkpoints = self.path / 'checkpoints'
    self.tensorboard = self.path / 'tensorboard'
    #: Step of the checkpoint that this process read or wrote last.
    self.saved_step: int | None = None

  def check(self, resume: bool = True) -> None:
    """Raises a `UserError` unless this config may run, or go on, here."""
    if not self.path.exists():
      return
    if not self.path.is_dir():
      raise errors.UserError(f'{self.path} is a file; --workdir is a directory')
    if not self.config.exists():
      others = [name for name in os.listdir(self.path) if not _ours(name)]
      if others:
        raise errors.UserError(
          f"{self.path} is not empty and holds no run ('{min(others)}' is "
          'there, config.json is not); choose another --workdir'
        )
      return
    if not resume:
      raise errors.UserError(
        f'--noresume starts in an empty directory, but {self.path} holds a '
        'run; choose another --workdir, or delete it'
      )
    different = config_lib.differences(
      computed(_read_json(self.config)), computed(self.fields)
    )
    if different:
      more = f' (and {len(different) - 4} more)' if different[4:] else ''
      raise errors.UserError(
        f'{self.path} holds a run of another config: '
        f'{", ".join(different[:4])}{more}; choose another --workdir, or '
        'delete it to start over'
      )

  def finished(self) -> dict[str, Any] | None:
    """Returns the summary of a run that is complete, or None."""
    return _read_json(self.summary) if self.summary.exists() else None

  @contextlib.contextmanager
  def locked(self):
    """Makes the directory, and keeps other processes out of it."""
    self.path.mkdir(parents=True, exist_ok=True)
    with open(self.path / 'lock', 'ab+', buffering=0) as lock:
      try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
      except BlockingIOError:
        lock.seek(0)
        owner = lock.read().decode() or 'another process'
        raise errors.UserError(
          f'{self.path} is in use by {owner}; wait for it, or choose another '
          '--workdir',
          code=1,
        ) from None
      with naming(self.path / 'lock'):
        lock.truncate(0)
        lock.write(f'process {os.getpid()}'.encode())
      self.check()  # again, now that nobody else can be writing
      if not self.config.exists():
        write_json(self.config, self.fields)
      yield self

  def read_metrics(self) -> list[dict[str, Any]]:
    """Returns the complete lines of ``metrics.jsonl``."""
    if not self.metrics.exists():
      return []
    lines = self.metrics.read_text().split('\n')[:-1]  # the last may be torn
    return [json.loads(line) for line in lines]

  def rewind(self, step: int) -> list[dict[str, Any]]:
    """Drops what was logged after ``step``, and returns what stays."""
    kept = [row for row in self.read_metrics() if row['step'] <= step]
    lines = ''.join(json.dumps(row) + '\n' for row in kept).encode()
    if not self.metrics.exists() or self.metrics.read_bytes() != lines:
      write_atomically(self.metrics, lines)
    return kept

  def append_metrics(self, row: Mapping[str, Any]) -> None:
    """Adds a line to ``metrics.jsonl``."""
    with naming(self.metrics), open(self.metrics, 'a') as file:
      file.write(json.dumps(row) + '\n')

  def write_summary(self, summary: Mapping[str, Any]) -> None:
    write_json(self.summary, summary)


def computed(fields: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the fields of a config without those of `EXECUTION`."""
  return {key: x for key, x in fields.items() if key not in EXECUTION}


def write_json(path: pathlib.Path, value: Any) -> None:
  """Writes pretty JSON atomically."""
  write_atomically(path, (json.dumps(value, indent=2) + '\n').encode())


def write_atomically(path: pathlib.Path, contents: bytes) -> None:
  """Replaces a file as a whole: readers see the old one or the new one."""
  partial = path.with_name(f'.{path.name}.partial')
  with naming(path):
    try:
      with open(partial, 'wb') as file:
        file.write(contents)
        file.flush()
        os.fsync(file.fileno())
      os.replace(partial, path)
    except OSError:
      partial.unlink(missing_ok=True)
      raise


@contextlib.contextmanager
def naming(path: pathlib.Path):
  """Puts the path into an ``OSError``; failed writes come without one."""
  try:
    yield
  except OSError as error:
    raise OSError(error.errno, error.strerror, str(path)) from error


def _ours(name: str) -> bool:
  """Says whether a file can be left by a run killed before its config."""
  return name == 'lock' or name == '.config.json.partial'


def _read_json(path: pathlib.Path) -> Any:
  try:
    return json.loads(path.read_text())
  except ValueError as error:
    raise errors.UserError(
      f'{path} is not valid JSON ({error}); repair it, or choose another '
      '--workdir'
    ) from error
