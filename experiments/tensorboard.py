"""TensorBoard events, written when they happen.

tensorboardX's own ``SummaryWriter`` writes in a thread, where a full disk kills
the thread and not the run. Its event file is used directly instead.
"""

import pathlib
import time
from collections.abc import Mapping
from typing import Any

from tensorboardX import event_file_writer
from tensorboardX.proto import event_pb2
from tensorboardX.proto import summary_pb2

from experiments import run_directory


class Writer:
  """Writes scalars to an event file of its own.

  Args:
    directory: of all event files of a run.
    step: after which the events of earlier files do not count: they are of
      steps that this process does again.
  """

  def __init__(self, directory: pathlib.Path, step: int):
    self._directory = directory
    with run_directory.naming(directory):
      directory.mkdir(exist_ok=True)
      self._file = event_file_writer.EventsWriter(
        str(directory / 'events'), f'.{time.time_ns()}'
      )
    start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
    self._write(event_pb2.Event(step=step + 1, session_log=start))

  def scalars(self, row: Mapping[str, Any]) -> None:
    """Writes a row of metrics at its own step."""
    values = [
      summary_pb2.Summary.Value(tag=name, simple_value=value)
      for name, value in row.items()
      if name != 'step'
    ]
    summary = summary_pb2.Summary(value=values)
    self._write(event_pb2.Event(step=row['step'], summary=summary))

  def _write(self, event: event_pb2.Event) -> None:
    event.wall_time = time.time()
    with run_directory.naming(self._directory):
      self._file.write_event(event)

  def flush(self) -> None:
    """Hands everything written to the operating system."""
    with run_directory.naming(self._directory):
      self._file.flush()

  def close(self) -> None:
    with run_directory.naming(self._directory):
      self._file.close()
