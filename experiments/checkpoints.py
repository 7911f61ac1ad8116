"""Checkpoints: complete or absent, and checked before they are used.

A checkpoint is a directory named after its step, with arrays (orbax) and a
manifest: the config and progress of the run, and the SHA-256 of every file and
array. It is written under another name and renamed when complete, so a process
killed while it writes leaves no half checkpoint; one that was truncated or
exchanged later does not match its manifest, and the one before is used.

Arrays are stored stacked and without their placement, so that any layout, on
any number of devices and processes, can read them. The first process reads and
writes; the others hear from it.
"""

import hashlib
import json
import os
import pathlib
import shutil
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from decopt import hosts
from experiments import config
from experiments import errors
from experiments import processes
from experiments import run_directory
from experiments import storage

KEPT = 3  # of the newest checkpoints


def save(
  directory: pathlib.Path,
  state: Any,
  progress: Mapping[str, Any],
  fields: Mapping[str, Any],
) -> None:
  """Writes a checkpoint, then deletes all but the newest `KEPT`.

  All processes of a run call it; the first one writes.

  Args:
    directory: of all checkpoints of a run.
    state: pytree of arrays.
    progress: JSON data with at least ``step``.
    fields: the resolved config of the run.

  Raises:
    OSError: if it cannot be written, for example on a full disk. What was
      there before is still there.
  """
  target = directory / str(progress['step'])
  partial = directory / f'.partial-{progress["step"]}'
  arrays = _flatten(hosts.fetch(_words(state)))
  if not processes.is_first():
    return
  with run_directory.naming(target):
    directory.mkdir(exist_ok=True)
    for leftover in directory.glob('.*-*'):
      shutil.rmtree(leftover)
    partial.mkdir()
    try:
      storage.write(partial / 'arrays', arrays)
      manifest = {
        'progress': progress,
        'config': fields,
        'files': storage.checksums(partial / 'arrays'),
        'arrays': _describe(arrays),
      }
      run_directory.write_json(partial / 'manifest.json', manifest)
      if target.exists():  # it is unusable, or this step would not come again
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


def restore(directory: pathlib.Path, like: Any, fields: Mapping[str, Any]):
  """Returns the newest usable checkpoint as (state, progress, notes).

  All processes of a run call it; the first one reads.

  Args:
    directory: of all checkpoints of a run.
    like: the state at step 0, for structure, shapes, dtypes and placement.
    fields: the resolved config of the run.

  Returns:
    ``(like, None, [])`` if there is no checkpoint. The notes, a line each, name
    newer checkpoints that could not be used.

  Raises:
    UserError: if there are checkpoints and none of them is usable.
  """
  found = {}
  progress, notes = processes.decide(
    lambda: _newest(directory, like, fields, found)
  )
  if progress is None:
    return like, None, notes
  return _place(found, like), progress, notes


def _newest(directory, like, fields, found: dict[str, np.ndarray]):
  """Reads the newest usable checkpoint into ``found``."""
  reasons = []
  for step in reversed(steps(directory)):
    try:
      arrays, progress = _load(directory / str(step), like, fields)
    # Damaged files make the libraries that read them raise all kinds.
    except Exception as error:
      reasons.append((step, _first_line(error)))
      continue
    found.update(arrays)
    notes = [
      f'checkpoint {bad} cannot be used ({reason}); going back to {step}'
      for bad, reason in reasons
    ]
    return progress, notes
  if reasons:
    listed = '; '.join(f'{step}: {reason}' for step, reason in reasons)
    raise errors.UserError(
      f'none of the checkpoints in {directory} can be used ({listed}); nothing '
      'was deleted. Choose another --workdir, or move the checkpoints away to '
      'start over',
      code=1,
    )
  return None, []


def _load(path: pathlib.Path, like: Any, fields: Mapping[str, Any]):
  """Reads one checkpoint; raises whatever is wrong with it."""
  manifest = json.loads((path / 'manifest.json').read_text())
  _require_same_run(manifest, like, fields)
  # Before orbax sees them: its threads complain at length of damaged files.
  found = storage.checksums(path / 'arrays')
  for name, checksum in manifest['files'].items():
    if found.get(name) != checksum:
      state = 'changed' if name in found else 'missing'
      raise ValueError(f'its file {name} is {state}')
  arrays = storage.read(path / 'arrays', manifest['arrays'])
  if _describe(arrays) != manifest['arrays']:
    raise ValueError('its arrays differ from what was saved')
  return arrays, manifest['progress']


def _require_same_run(manifest, like: Any, fields: Mapping[str, Any]) -> None:
  """Raises ValueError if a checkpoint is of another run."""
  mine, theirs = (
    {
      key: value
      for key, value in given.items()
      if key not in run_directory.EXECUTION
    }
    for given in (fields, manifest['config'])
  )
  different = config.differences(theirs, mine)
  if different:
    raise ValueError(f'it is of another config: {different[0]}')
  expected = {
    name: (list(leaf.shape), str(leaf.dtype))
    for name, leaf in _flatten(jax.eval_shape(_words, like)).items()
  }
  found = {
    name: (entry['shape'], entry['dtype'])
    for name, entry in manifest['arrays'].items()
  }
  for name in sorted(expected.keys() | found.keys()):
    if found.get(name) != expected.get(name):
      raise ValueError(
        f'it is of another state: {name} is {found.get(name, "absent")} and '
        f'should be {expected.get(name, "absent")}'
      )


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
  """Puts arrays into the structure and onto the devices of ``like``.

  Args:
    arrays: by name, as `_flatten` has them; empty in all but the first process.
    like: the tree, with shapes, dtypes and placement.
  """
  shapes = _flatten(jax.eval_shape(_words, like))

  def place(path, leaf):
    name = jax.tree_util.keystr(path)
    empty = np.zeros(shapes[name].shape, shapes[name].dtype)
    array = processes.broadcast(arrays.get(name, empty))
    if _is_key(leaf):
      array = jax.random.wrap_key_data(array, impl=jax.random.key_impl(leaf))
    return hosts.put(array, leaf.sharding)

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


def _free_name(path: pathlib.Path) -> pathlib.Path:
  """Returns a name beside ``path`` that is not taken."""
  number = 1
  while (free := path.with_name(f'{path.name}.unused-{number}')).exists():
    number += 1
  return free


def _first_line(error: Exception) -> str:
  text = str(error).strip().split('\n')[0] or type(error).__name__
  return text if len(text) <= 160 else f'{text[:157]}...'
