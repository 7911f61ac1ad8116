"""From nothing to the first finished step: two programs as processes.

What a user waits for before anything happens: the interpreter, the imports,
building the optimizer and the step, compiling, one step. The files beside this
one are the programs; both print the loss of that step.
"""

import os
import pathlib
import subprocess
import sys

import numpy as np

import experiments
from experiments.bench import cases


def contest() -> cases.Contest:
  """Processes of both programs, a value in seconds."""
  return cases.Contest(
    lambda: run('with_decopt'), {'by hand': lambda: run('by_hand')}, 's'
  )


def run(name: str) -> np.ndarray:
  """Runs one of the programs as a process of its own and returns its losses.

  Args:
    name: a module beside this file.

  Raises:
    subprocess.CalledProcessError: if the program fails; its own message is on
      the standard error.
  """
  root = pathlib.Path(experiments.__file__).parents[1]
  paths = [str(root), *filter(None, [os.environ.get('PYTHONPATH')])]
  done = subprocess.run(
    [sys.executable, pathlib.Path(__file__).with_name(f'{name}.py')],
    check=True,
    stdout=subprocess.PIPE,
    text=True,
    env={**os.environ, 'PYTHONPATH': os.pathsep.join(paths)},
  )
  return np.array(done.stdout.split(), np.float64)
