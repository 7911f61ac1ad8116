"""Checkpoints: complete or absent, and checked before they are used.

A checkpoint is a directory named after its step, with arrays (orbax) and a
manifest that holds the progress of the run and the shape, dtype and SHA-256 of
every array. It is written under another name and renamed when complete, so a
process killed while it writes leaves no half checkpoint; one that was truncated
or exchanged later does not match its manifest, and the one before is used.

Arrays are stored stacked and without their placement: a checkpoint moves
between layouts.
"""

import hashlib
import json
import os
import pathlib
import re
import shutil
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from absl import logging

from experiments import errors
from experiments import run_directory

KEPT = 3  # of the newest checkpoints


def save(
  directory: pathlib.Path, state: Any, progress: Mapping[str, Any]
) -> None:
  """Writes a checkpoint, then deletes all but the newest `KEPT`.

  Args:
    directory: of all checkpoints of a run.
    state: pytree of arrays.
    progress: JSON data with at least ``step``.

  Raises:
    OSError: if it cannot be written, for example on a full disk. What was
      there before is still there.
  """
  target = directory / str(progress['step'])
  partial = directory / f'.partial-{progress["step"]}'
  with run_directory.naming(directory):
    directory.mkdir(exist_ok=True)
    for leftover in directory.glob('.*-*'):
      shutil.rmtree(leftover)
    partial.mkdir()
  arrays = _flatten(jax.tree.map(np.asarray, _words(state)))
  try:
    _write_arrays(partial / 'arrays', arrays)
    manifest = {'progress': progress, 'arrays': _describe(arrays)}
    run_directory.write_json(partial / 'manifest.json', manifest)
    if target.exists():  # it is unusable too
      os.rename(target, _free_name(target))
    os.rename(partial, target)
  except OSError:
    shutil.rmtree(partial, ignore_errors=True)
    raise
  # Newer ones are unusable, or this step would not be done again.
  older = [step for step in steps(directory) if step <= progress['step']]
  for old in older[:-KEPT]:
    doomed = directory / f'.doomed-{old}'
    os.rename(directory / str(old), doomed)
    shutil.rmtree(doomed)


def steps(directory: pathlib.Path) -> list[int]:
  """Returns the steps of which there are checkpoints, oldest first."""
  if not directory.is_dir():
    return []
  names = (entry.name for entry in directory.iterdir())
  return sorted(int(name) for name in names if name.isdecimal())


def restore(directory: pathlib.Path, like: Any):
  """Returns the newest usable checkpoint as (state, progress, notes).

  Args:
    directory: of all checkpoints of a run.
    like: the state at step 0, for structure, shapes, dtypes and placement.

  Returns:
    ``(like, None, [])`` if there is no checkpoint. The notes, a line each, name
    newer checkpoints that could not be used.

  Raises:
    UserError: if there are checkpoints and none of them is usable.
  """
  reasons = []
  for step in reversed(steps(directory)):
    try:
      state, progress = _load(directory / str(step), like)
    # Damaged files make the libraries that read them raise all kinds.
    except Exception as error:
      reasons.append((step, _first_line(error)))
      continue
    notes = [
      f'checkpoint {bad} cannot be used ({reason}); going back to {step}'
      for bad, reason in reasons
    ]
    return state, progress, notes
  if reasons:
    listed = '; '.join(f'{step}: {reason}' for step, reason in reasons)
    raise errors.UserError(
      f'none of the checkpoints in {directory} can be used ({listed}); nothing '
      'was deleted. Choose another --workdir, or move the checkpoints away to '
      'start over',
      code=1,
    )
  return like, None, []


def _load(path: pathlib.Path, like: Any):
  """Reads one checkpoint; raises whatever is wrong with it."""
  manifest = json.loads((path / 'manifest.json').read_text())
  expected = {
    name: (list(leaf.shape), str(leaf.dtype))
    for name, leaf in _flatten(jax.eval_shape(_words, like)).items()
  }
  found = {
    name: (entry['shape'], entry['dtype'])
    for name, entry in manifest['arrays'].items()
  }
  if found != expected:
    odd = [n for n in found | expected if found.get(n) != expected.get(n)]
    raise ValueError(
      f'it is of another model or optimizer: {odd[0]} is '
      f'{found.get(odd[0], "absent")} and should be '
      f'{expected.get(odd[0], "absent")}'
    )
  arrays = _read_arrays(path / 'arrays', manifest['arrays'])
  actual = _describe(arrays)
  for name, entry in manifest['arrays'].items():
    if actual[name] != entry:
      raise ValueError(f'{name} differs from what was saved')
  return _place(arrays, like), manifest['progress']


def _flatten(tree: Any) -> dict[str, Any]:
  leaves = jax.tree_util.tree_leaves_with_path(tree)
  return {jax.tree_util.keystr(path): leaf for path, leaf in leaves}


def _words(state: Any) -> Any:
  """Replaces typed random keys by the words that they are made of."""
  return jax.tree.map(
    lambda leaf: jax.random.key_data(leaf) if _is_key(leaf) else leaf, state
  )


def _is_key(leaf: Any) -> bool:
  return jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _place(arrays: Mapping[str, np.ndarray], like: Any) -> Any:
  """Puts arrays into the structure and onto the devices of ``like``."""

  def place(path, leaf):
    array = arrays[jax.tree_util.keystr(path)]
    if _is_key(leaf):
      array = jax.random.wrap_key_data(array, impl=jax.random.key_impl(leaf))
    return jax.device_put(array, leaf.sharding)

  return jax.tree_util.tree_map_with_path(place, like)


def _describe(arrays: Mapping[str, np.ndarray]) -> dict[str, dict[str, Any]]:
  return {
    name: {
      'shape': list(array.shape),
      'dtype': str(array.dtype),
      'sha256': hashlib.sha256(array.tobytes()).hexdigest(),
    }
    for name, array in arrays.items()
  }


def _write_arrays(path: pathlib.Path, arrays: Mapping[str, np.ndarray]) -> None:
  # orbax refuses arrays without elements; the manifest says all about those.
  filled = {name: array for name, array in arrays.items() if array.size}
  try:
    with _quiet():
      _checkpointer().save(path, filled)
  except ValueError as error:
    # The storage library reports errors of the system as text in a ValueError.
    code = re.search(r"os_error_code='(\d+)'", str(error))
    if code is None:
      raise
    number = int(code[1])
    raise OSError(number, os.strerror(number), str(path)) from error


def _read_arrays(path: pathlib.Path, described: Mapping[str, Any]):
  with _quiet():
    read = _checkpointer().restore(path)
  for name, entry in described.items():
    if 0 in entry['shape']:
      read[name] = np.empty(entry['shape'], entry['dtype'])
  return {name: np.asarray(array) for name, array in read.items()}


def _checkpointer():
  # Imported late: it takes longer than everything else before the first step.
  import orbax.checkpoint

  return orbax.checkpoint.PyTreeCheckpointer()


class _quiet:
  """Keeps orbax from logging a traceback for each of its threads."""

  def __enter__(self):
    self._verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.FATAL)

  def __exit__(self, *unused):
    logging.set_verbosity(self._verbosity)


def _free_name(path: pathlib.Path) -> pathlib.Path:
  """Returns a name beside ``path`` that is not taken."""
  number = 1
  while (free := path.with_name(f'{path.name}.unused-{number}')).exists():
    number += 1
  return free


def _first_line(error: Exception) -> str:
  text = str(error).strip().split('\n')[0] or type(error).__name__
  return text if len(text) <= 160 else f'{text[:157]}...'
