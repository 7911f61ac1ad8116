"""Graphs that are made of other graphs."""

from collections.abc import Callable

import numpy as np

from decopt import arguments
from decopt.graphs import regular
from decopt.topology import Topology


def two_level(
  machines: int,
  workers_per_machine: int,
  between: Callable[[int], Topology] | Topology = regular.ring,
) -> Topology:
  r"""All-reduce inside of a machine and gossip between machines, in one round.

  .. math::

    W = B \otimes \tfrac{1}{v} \mathbf{1} \mathbf{1}^\top

  for the weights :math:`B` ``between`` machines and :math:`v`
  ``workers_per_machine``: worker `m * v + i` is the `i`-th of machine `m`. The
  spectral gap, the period and what is preserved are those of :math:`B`.

  It says what hierarchical averaging does to consensus. It is not a way to save
  messages: as a plain graph each worker hears all workers of the machines next
  to its own.

  Args:
    machines: any number, 1 or more, that `between` exists for.
    workers_per_machine: any number, 1 or more.
    between: a topology whose workers are the machines; or a function that makes
      one of their number.

  Raises:
    TypeError: if a number is not an integer, or `between` neither of these.
    ValueError: if a number is less than 1, or the topology between machines has
      another number of workers.

  Example:
    >>> topology = two_level(4, 2, decopt.one_peer_exponential)
    >>> topology.workers, topology.period, topology.spectral_gap()
    (8, 2, 1.0)

  References:
    Lin et al., `Don't Use Large Mini-Batches, Use Local SGD
    <https://arxiv.org/abs/1808.07217>`_, 2020 (hierarchical local SGD).
  """
  machines = arguments.count('two_level', machines=machines)
  size = arguments.count('two_level', workers_per_machine=workers_per_machine)
  outer = between(machines) if callable(between) else between
  if not isinstance(outer, Topology):
    raise TypeError(
      'two_level needs a topology between machines, or a function that makes '
      f'one of their number, but got {outer!r}. Use between=decopt.ring or '
      f'between=decopt.ring({machines}).'
    )
  if outer.workers != machines:
    raise ValueError(
      f"two_level got {machines} machines, but '{outer.name}' between them has "
      f'{outer.workers} workers. Use machines={outer.workers}, or a topology '
      f'of {machines} workers.'
    )
  inside = np.full((size, size), 1 / size)
  return Topology(np.kron(outer.weights, inside), f'two_level({outer.name})')


def alternate(*topologies: Topology) -> Topology:
  """The rounds of one topology after those of another, and so on, and again.

  The period is the sum of all periods. Weights are symmetric, or preserve the
  mean, if all of them are or do.

  Args:
    *topologies: one or more, with as many workers.

  Raises:
    TypeError: if one of them is no `Topology`.
    ValueError: if there are none, if numbers of workers differ, or if rows sum
      to 1 in one and only columns in another.

  Example:
    >>> alternate(decopt.ring(8), decopt.star(8)).period
    2
  """
  if not topologies:
    raise ValueError(
      'alternate got no topologies. Use decopt.alternate(decopt.ring(8), '
      'decopt.star(8)).'
    )
  first = topologies[0]
  for topology in topologies:
    if not isinstance(topology, Topology):
      raise TypeError(
        f'alternate needs topologies, but got {topology!r}. Give them one by '
        'one, each built for a number of workers: '
        'decopt.alternate(decopt.ring(8), decopt.star(8)).'
      )
    if topology.workers != first.workers:
      raise ValueError(
        f"alternate needs topologies with as many workers, but '{first.name}' "
        f"has {first.workers} and '{topology.name}' has {topology.workers}."
      )
  rounds = np.concatenate([topology.weights for topology in topologies])
  names = ', '.join(topology.name for topology in topologies)
  return Topology(rounds, f'alternate({names})')
