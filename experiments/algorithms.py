"""The algorithms that a config can name: builders and one line each.

A builder takes an optax optimizer, a ``topology`` if it has that parameter, and
whatever else it needs from ``config.algorithm`` under the names of its own
parameters. A new algorithm is one row of `ALGORITHMS`.
"""

from collections.abc import Mapping
from typing import Any

import optax

import decopt
from experiments import errors
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


def build(
  section: Mapping[str, Any],
  optimizer: optax.GradientTransformation,
  topology: decopt.Topology | None,
) -> optax.GradientTransformation:
  """Returns the chain that ``config.algorithm`` describes.

  Args:
    section: ``name`` and arguments, such as ``period``.
    optimizer: what each worker adapts with.
    topology: for the algorithms that need one.

  Raises:
    UserError: for an unknown name or argument, or one that is out of range.
  """
  name = section['name']
  provided = {'optimizer': optimizer}
  if needs_topology(name):
    provided['topology'] = topology
  given = sections.arguments(section)
  return sections.call('algorithm', name, _builder(name), given, **provided)


def _builder(name: str):
  if name not in ALGORITHMS:
    raise errors.unknown('algorithm', name, ALGORITHMS)
  return ALGORITHMS[name][0]
