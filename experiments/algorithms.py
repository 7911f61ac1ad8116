"""The algorithms that a config can name: builders and one line each.

A builder takes an optax optimizer, a ``topology`` and ``faults`` if it has such
parameters, and whatever else it needs from ``config.algorithm`` under the names
of its own parameters. A new algorithm is one row of `ALGORITHMS`.
"""

from collections.abc import Mapping
from typing import Any

import optax

import decopt
from experiments import errors
from experiments import faults as faults_lib
from experiments import sections

#: name -> (builder, one line for ``--list``)
ALGORITHMS = {
  'all_reduce_sgd': (
    decopt.all_reduce_sgd,
    'averages the gradients of all workers at every step; the baseline',
  ),
  'dsgd': (
    decopt.dsgd,
    'averages parameters with neighbours while adapting (D-PSGD)',
  ),
  'diffusion': (
    decopt.diffusion,
    'adapts, then averages parameters with neighbours (adapt-then-combine)',
  ),
  'sgp': (
    decopt.sgp,
    'like diffusion where links are directed: push-sum of the parameters',
  ),
  'local_sgd': (
    decopt.local_sgd,
    'trains locally, averages parameters over all workers every `period` steps',
  ),
  'decentralized_local_sgd': (
    decopt.decentralized_local_sgd,
    'trains locally, averages parameters with neighbours every `period` steps',
  ),
}


def needs_topology(name: str) -> bool:
  """Says whether an algorithm talks to neighbours.

  Raises:
    UserError: if there is no algorithm of this name, with the closest one.
  """
  return 'topology' in sections.parameters(_builder(name))


def takes_faults(name: str) -> bool:
  """Says whether an algorithm can lose messages and workers."""
  return 'faults' in sections.parameters(_builder(name))


def build(
  section: Mapping[str, Any],
  optimizer: optax.GradientTransformation,
  topology: decopt.Topology | None,
  faults: Mapping[str, Any] | None = None,
) -> optax.GradientTransformation:
  """Returns the chain that ``config.algorithm`` describes.

  Args:
    section: ``name`` and arguments, such as ``period``.
    optimizer: what each worker adapts with.
    topology: for the algorithms that need one.
    faults: ``config.faults``; None for none. Workers that leave also stop
      adapting, except between the meetings of an algorithm with a period.

  Raises:
    UserError: for an unknown name or argument, one that is out of range, or
      faults for an algorithm that does not take any.
  """
  name = section['name']
  provided = {'optimizer': optimizer}
  if needs_topology(name):
    provided['topology'] = topology
  provided |= _with_faults(name, optimizer, faults or {'name': 'none'})
  given = sections.arguments(section)
  return sections.call('algorithm', name, _builder(name), given, **provided)


def _with_faults(name: str, optimizer, section) -> dict[str, Any]:
  """Returns the faults that an algorithm gets, and its optimizer among them."""
  faults = faults_lib.build(section)
  takes = sections.parameters(_builder(name))
  if 'faults' not in takes:
    if faults is None:
      return {}
    others = ', '.join(filter(takes_faults, ALGORITHMS))
    raise errors.UserError(
      f"algorithm '{name}' takes no faults, but config.faults.name is "
      f"'{section['name']}'; algorithms that do: {others}"
    )
  if faults_lib.stops_workers(section) and 'period' not in takes:
    optimizer = decopt.while_active(optimizer, faults)
  return {'faults': faults, 'optimizer': optimizer}


def _builder(name: str):
  if name not in ALGORITHMS:
    raise errors.unknown('algorithm', name, ALGORITHMS)
  return ALGORITHMS[name][0]
