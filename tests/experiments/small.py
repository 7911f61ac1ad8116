"""A run that takes a second: what the tests of the run layer share."""

import atexit
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from configs import digits
from experiments import config as config_lib
from experiments import run_directory

REPOSITORY = pathlib.Path(__file__).parents[2]

#: Overrides of configs/digits.py: 12 checkpoints, at all phases of a period.
OVERRIDES = {
  'workload.hidden': 8,
  'workers': 4,
  'algorithm.name': 'decentralized_local_sgd',
  'algorithm.period': 7,
  'batch_size': 4,
  'steps': 60,
  'log_every': 10,
  'eval_every': 20,
  'checkpoint_every': 5,
}


def fields(**overrides):
  """Returns a resolved config; keywords have ``__`` for the dots."""
  return resolved(digits.get_config(), OVERRIDES | _dotted(overrides))


def emptied(sections):
  """Returns the config of the digits with some sections exchanged."""
  config = digits.get_config()
  for name, section in sections.items():
    config[name] = section
  return config


def resolved(config, given):
  """Returns a config resolved with overrides by dotted path."""
  for path, value in given.items():
    *sections, name = path.split('.')
    section = config
    for step in sections:
      section = section[step]
    section[name] = value
  return config_lib.resolve(config, given)


def command(workdir, *arguments, **overrides):
  """Returns the command that runs `fields` in ``workdir``."""
  given = OVERRIDES | _dotted(overrides)
  return [
    sys.executable,
    '-m',
    'experiments.train',
    '--config=configs/digits.py',
    f'--workdir={workdir}',
    *(f'--config.{path}={value}' for path, value in given.items()),
    *arguments,
  ]


def _dotted(overrides):
  return {key.replace('__', '.'): value for key, value in overrides.items()}


def numbers(workdir: pathlib.Path):
  """Returns the metrics of a run without times."""
  lines = (workdir / 'metrics.jsonl').read_text().splitlines()
  return [
    {
      key: value
      for key, value in json.loads(line).items()
      if key not in run_directory.TIMES
    }
    for line in lines
  ]


def start(*arguments, environment=None, **options):
  """Starts a command in the repository, with its output in pipes.

  Processes share what they compile: most of the time of a small run is that.
  """
  cache = compilation_cache(_folder())
  return subprocess.Popen(
    *arguments,
    cwd=REPOSITORY,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
    env=os.environ
    | {key.upper(): str(x) for key, x in cache.items()}
    | (environment or {}),
    **options,
  )


def compilation_cache(folder: str):
  """Returns options of jax that keep all compiled programs in a folder."""
  return {
    'jax_compilation_cache_dir': folder,
    'jax_persistent_cache_min_compile_time_secs': 0.0,
    'jax_persistent_cache_min_entry_size_bytes': -1,
  }


@functools.cache
def _folder() -> str:
  folder = tempfile.TemporaryDirectory()
  atexit.register(folder.cleanup)
  return folder.name


def finish(process, timeout: float = 120):
  """Waits for a process; returns its exit code, output and errors."""
  try:
    output, errors = process.communicate(timeout=timeout)
  finally:
    process.kill()
  return process.returncode, output, errors
