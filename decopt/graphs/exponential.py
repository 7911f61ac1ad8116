"""Neighbours at distances that double: quick to agree, for any number."""

import numpy as np

from decopt import weights
from decopt.graphs import links
from decopt.topology import Topology


def exponential(workers: int) -> Topology:
  """Worker `i` sends to `i + 1`, `i + 2`, `i + 4`, ... around the ring.

  Directed, so not symmetric. There are `d = ceil(log2(workers))` neighbours,
  with weights `1 / (d + 1)`; the spectral gap is `2 / (d + 1)` for an even
  number of workers, and larger for an odd one.

  Args:
    workers: any number, 1 or more.

  Raises:
    TypeError: if `workers` is not an integer.
    ValueError: if it is less than 1.

  Example:
    >>> exponential(8)
    Topology('exponential', workers=8, degree=3, period=1, spectral_gap=0.5)

  References:
    Ying et al., `Exponential Graph is Provably Efficient for Decentralized Deep
    Training <https://arxiv.org/abs/2110.13363>`_, 2021.
  """
  workers = links.count('exponential', workers=workers)
  return weights.uniform(
    'exponential', links.shifted(workers, links.powers_of_two(workers))
  )


def one_peer_exponential(workers: int) -> Topology:
  """In round `t` of a period, worker `i` sends to `i + 2**t` and to no other.

  Directed, with weights 1/2 and a period of `d = ceil(log2(workers))` rounds.
  For `workers = 2**d` one period averages exactly: the spectral gap is 1. One
  message per step, whatever the number of workers.

  Args:
    workers: any number, 1 or more.

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
  workers = links.count('one_peer_exponential', workers=workers)
  rounds = [[offset] for offset in links.powers_of_two(workers)] or [[]]
  return weights.uniform(
    'one_peer_exponential',
    np.stack([links.shifted(workers, offsets) for offsets in rounds]),
  )
