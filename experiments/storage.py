"""Arrays in files, by orbax, with what its callers expect of a file system.

orbax reports errors of the system as text, logs a traceback for each of its
threads, and takes long to import; that is dealt with here.
"""

import contextlib
import functools
import hashlib
import os
import pathlib
import re
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from absl import logging


def checksums(path: pathlib.Path) -> dict[str, str]:
  """Returns the SHA-256 of each file under ``path``."""
  return {
    str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest()
    for file in sorted(path.rglob('*'))
    if file.is_file()
  }


def write(path: pathlib.Path, arrays: Mapping[str, np.ndarray]) -> None:
  """Writes named arrays into a new directory.

  Raises:
    OSError: if the system refuses, for example on a full disk.
  """
  # orbax refuses arrays without elements; `read` needs no file for them.
  filled = {name: array for name, array in arrays.items() if array.size}
  try:
    with _quiet() as checkpointer:
      checkpointer.save(path, filled)
  except ValueError as error:
    code = re.search(r"os_error_code='(\d+)'", str(error))
    if code is None:
      raise
    number = int(code[1])
    raise OSError(number, os.strerror(number), str(path)) from error


def read(
  path: pathlib.Path, described: Mapping[str, Mapping[str, Any]]
) -> dict[str, np.ndarray]:
  """Reads what `write` wrote.

  Args:
    path: of the directory.
    described: ``shape`` and ``dtype`` of each array.
  """
  with _quiet() as checkpointer:
    found = checkpointer.restore(path)
  for name, entry in described.items():
    if 0 in entry['shape']:
      found[name] = np.empty(entry['shape'], entry['dtype'])
  return {name: np.asarray(array) for name, array in found.items()}


@contextlib.contextmanager
def _quiet():
  """Gives a checkpointer of orbax that logs nothing; its errors say it all."""
  # Imported late: it takes longer than all else before the first step.
  import orbax.checkpoint

  _drop_late_callbacks()
  verbosity = logging.get_verbosity()
  logging.set_verbosity(logging.FATAL)
  try:
    # By this process alone, without meeting the others, which do not write.
    alone = orbax.checkpoint.options.MultiprocessingOptions(
      primary_host=0,
      active_processes={0},
      barrier_sync_key_prefix='first',
    )
    handler = orbax.checkpoint.PyTreeCheckpointHandler(
      multiprocessing_options=alone
    )
    yield orbax.checkpoint.Checkpointer(handler, multiprocessing_options=alone)
  finally:
    logging.set_verbosity(verbosity)


@functools.cache
def _drop_late_callbacks() -> None:
  """Keeps Python from printing what cannot be delivered after a failure.

  At the first array that fails orbax raises and closes its event loop. The
  results of the other arrays come later, from threads, and each prints a
  traceback because the loop is closed.
  """
  show = sys.unraisablehook

  def hook(unraisable):
    if str(unraisable.exc_value) != 'Event loop is closed':
      show(unraisable)

  sys.unraisablehook = hook
