"""The suites that ``python -m experiments.bench`` knows.

To add one, write a module with a function ``cases()`` that returns a list of
`cases.Case`, and give it a line here.
"""

import concurrent.futures
import importlib
import multiprocessing
from collections.abc import Iterator, Sequence

import jax

from experiments import errors
from experiments.bench import cases

SUITES = {
  'core': 'experiments.bench.core',
  'mixing': 'experiments.bench.mixing',
}


def load(suite: str) -> dict[str, cases.Case]:
  """Returns the cases of a suite by name, in their order.

  Raises:
    UserError: if there is no such suite.
  """
  if suite not in SUITES:
    raise errors.unknown('suite', suite, SUITES)
  listed = importlib.import_module(SUITES[suite]).cases()
  return {case.name: case for case in listed}


def select(suite: str, only: list[str] | None = None) -> list[cases.Case]:
  """Returns the cases to run.

  Args:
    suite: a key of `SUITES`.
    only: names of cases; all if empty or None.

  Raises:
    UserError: if the suite has no case of such a name.
  """
  listed = load(suite)
  for name in only or ():
    if name not in listed:
      raise errors.unknown(f'case in suite {suite!r} called', name, listed)
  return [case for case in listed.values() if not only or case.name in only]


def measured(
  suite: str, selected: Sequence[cases.Case], repeats: int | None
) -> Iterator[tuple[cases.Case, cases.Result]]:
  """Yields results; each case runs in a new process.

  So none inherits another's heap, threads, or number of devices.
  """
  context = multiprocessing.get_context('spawn')
  for case in selected:
    with concurrent.futures.ProcessPoolExecutor(1, context) as process:
      job = process.submit(measure_by_name, suite, case.name, repeats)
      yield case, job.result()


def measure_by_name(suite: str, name: str, repeats: int | None) -> cases.Result:
  """Measures a case in this process, which has not used any device yet."""
  (case,) = select(suite, [name])
  if case.devices > 1:
    jax.config.update('jax_num_cpu_devices', case.devices)
  return cases.measure(case, repeats)
