"""Graphs without circles, and others with a border: unequal degrees."""

import numpy as np

from decopt import weights
from decopt.graphs import links
from decopt.topology import Topology


def star(workers: int) -> Topology:
  """Worker 0 is the neighbour of all others, which have no other neighbour.

  Symmetric, with Metropolis-Hastings weights `1 / workers` on every link; the
  spectral gap is `1 / workers`.

  Args:
    workers: any number, 1 or more.

  Raises:
    TypeError: if `workers` is not an integer.
    ValueError: if it is less than 1.

  Example:
    >>> star(8)
    Topology('star', workers=8, degree=7, period=1, spectral_gap=0.125)
  """
  workers = links.count('star', workers=workers)
  meets = np.zeros((workers, workers), bool)
  meets[0, 1:] = meets[1:, 0] = True
  return weights.metropolis_hastings('star', meets)
