"""Neighbours at distances that double: quick to agree, for any number."""

import numpy as np

from decopt import arguments
from decopt import weights
from decopt.graphs import links
from decopt.topology import Topology


def exponential(workers: int, *, symmetric: bool = False) -> Topology:
  """Worker `i` sends to `i + 1`, `i + 2`, `i + 4`, ... around the ring.

  Directed, so not symmetric. There are `d = ceil(log2(workers))` neighbours,
  with weights `1 / (d + 1)`; the spectral gap is `2 / (d + 1)` for an even
  number of workers, and larger for an odd one.

  Symmetric, it sends both ways: to `i + 2**t` and `i - 2**t` for all distances
  `2**t` up to half of the ring. These are nearly twice as many neighbours.

  Args:
    workers: any number, 1 or more.
    symmetric: whether each worker hears those that it sends to.

  Raises:
    TypeError: if `workers` is not an integer.
    ValueError: if it is less than 1.

  Example:
    >>> exponential(8)
    Topology('exponential', workers=8, degree=3, period=1, spectral_gap=0.5)
    >>> exponential(8, symmetric=True).degree
    5

  References:
    Ying et al., `Exponential Graph is Provably Efficient for Decentralized Deep
    Training <https://arxiv.org/abs/2110.13363>`_, 2021.
  """
  workers = arguments.count('exponential', workers=workers)
  if symmetric:
    distances = links.powers_of_two(workers // 2 + 1)
    offsets = [*distances, *(-distance for distance in distances)]
    name = 'symmetric_exponential'
  else:
    offsets, name = links.powers_of_two(workers), 'exponential'
  return weights.uniform(name, links.shifted(workers, offsets))


def one_peer_exponential(workers: int, *, symmetric: bool = False) -> Topology:
  """In round `t` of a period, worker `i` sends to `i + 2**t` and to no other.

  Directed, with weights 1/2 and a period of `d = ceil(log2(workers))` rounds.
  For `workers = 2**d` one period averages exactly: the spectral gap is 1. One
  message per step, whatever the number of workers.

  Symmetric, workers whose numbers differ in bit `t` swap with each other, and
  those whose partner does not exist rest. A period averages exactly for powers
  of two here, too; for the exact mean of any number see `decopt.base_graph`.

  Args:
    workers: any number, 1 or more.
    symmetric: whether each worker hears the one that it sends to.

  Raises:
    TypeError: if `workers` is not an integer.
    ValueError: if it is less than 1.

  Example:
    >>> topology = one_peer_exponential(8)
    >>> topology.period, topology.degree, topology.spectral_gap()
    (3, 1, 1.0)

  References:
    Ying et al., `Exponential Graph is Provably Efficient for Decentralized Deep
    Training <https://arxiv.org/abs/2110.13363>`_, 2021.
  """
  workers = arguments.count('one_peer_exponential', workers=workers)
  if symmetric:
    bits = np.array(links.powers_of_two(workers) or [0])
    numbers = np.arange(workers)
    partners = numbers ^ bits[:, None]
    partners = np.where(partners < workers, partners, numbers)
    return weights.uniform(
      'symmetric_one_peer_exponential', links.paired(partners)
    )
  rounds = [[offset] for offset in links.powers_of_two(workers)] or [[]]
  return weights.uniform(
    'one_peer_exponential',
    np.stack([links.shifted(workers, offsets) for offsets in rounds]),
  )
