"""Graphs that look the same from each worker, or nearly: equal weights."""

import numpy as np

from decopt import arguments
from decopt import weights
from decopt.graphs import links
from decopt.topology import Topology


def ring(workers: int, *, directed: bool = False) -> Topology:
  """Two neighbours for each worker: `i - 1` and `i + 1`, with weights 1/3.

  Symmetric. From 3 workers on, the spectral gap is `2/3 (1 - cos(2 pi /
  workers))`, about `13 / workers**2`: cheap in each step, slow to agree.

  Directed, worker `i` sends to `i + 1` only, with weights 1/2: half the
  messages, still doubly stochastic, and a spectral gap of `1 - cos(pi /
  workers)`, about `5 / workers**2`.

  Args:
    workers: any number, 1 or more.
    directed: whether messages go around the ring one way only.

  Raises:
    TypeError: if `workers` is not an integer.
    ValueError: if it is less than 1.

  Example:
    >>> ring(8)
    Topology('ring', workers=8, degree=2, period=1, spectral_gap=0.1953)
    >>> round(ring(8, directed=True).spectral_gap(), 4)
    0.0761
  """
  workers = arguments.count('ring', workers=workers)
  if directed:
    return weights.uniform('directed_ring', links.shifted(workers, [1]))
  return weights.uniform('ring', links.shifted(workers, [1, -1]))


def complete(workers: int) -> Topology:
  """Everyone is everyone's neighbour, with weights `1 / workers`.

  Symmetric; the spectral gap is 1: one round of it is the exact mean. As an
  all-reduce it would cost less: see `decopt.all_reduce`.

  Args:
    workers: any number, 1 or more.

  Raises:
    TypeError: if `workers` is not an integer.
    ValueError: if it is less than 1.

  Example:
    >>> complete(8)
    Topology('complete', workers=8, degree=7, period=1, spectral_gap=1)
  """
  workers = arguments.count('complete', workers=workers)
  return weights.uniform('complete', links.everyone(workers))


def torus(rows: int, columns: int) -> Topology:
  """A grid whose opposite edges are joined: four neighbours, weights 1/5.

  Worker `r * columns + c` is in row `r` and column `c`. Symmetric; with sides
  of 3 or more the spectral gap is `2/5 (1 - cos(2 pi / longer side))`.

  Args:
    rows: any number, 1 or more; with 1 or 2 rows there are fewer neighbours.
    columns: likewise; the number of workers is `rows * columns`.

  Raises:
    TypeError: if a side is not an integer.
    ValueError: if a side is less than 1.

  Example:
    >>> torus(3, 4)
    Topology('torus', workers=12, degree=4, period=1, spectral_gap=0.4)
  """
  rows = arguments.count('torus', rows=rows)
  columns = arguments.count('torus', columns=columns)
  along_columns = np.kron(
    links.shifted(rows, [1, -1]), np.eye(columns, dtype=bool)
  )
  along_rows = np.kron(
    np.eye(rows, dtype=bool), links.shifted(columns, [1, -1])
  )
  return weights.uniform('torus', along_columns | along_rows)


def hypercube(workers: int) -> Topology:
  """Neighbours differ in one bit of their number; `d` of them, for `2**d`.

  Symmetric, with weights `1 / (d + 1)`; the spectral gap is `2 / (d + 1)`.

  Args:
    workers: a power of two.

  Raises:
    TypeError: if `workers` is not an integer.
    ValueError: if it is not a power of two, with those that are nearest.

  Example:
    >>> hypercube(8)
    Topology('hypercube', workers=8, degree=3, period=1, spectral_gap=0.5)
  """
  workers = arguments.count('hypercube', workers=workers)
  if workers & (workers - 1):
    above = 1 << workers.bit_length()
    raise ValueError(
      f'hypercube needs a power of two as workers, but got {workers}. Use '
      f'decopt.hypercube({above // 2}) or decopt.hypercube({above}); or, for '
      f'any number and as quick to agree, decopt.exponential({workers}).'
    )
  numbers = np.arange(workers)
  differ = numbers[:, None] ^ numbers
  return weights.uniform('hypercube', np.bitwise_count(differ) == 1)
