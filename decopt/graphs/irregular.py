"""Graphs with a middle and a border, where degrees are not equal.

All have Metropolis-Hastings weights, which are symmetric and preserve the mean
however the degrees differ: `1 / (1 + larger degree)` on a link.
"""

import numpy as np

from decopt import arguments
from decopt import weights
from decopt.graphs import links
from decopt.topology import Topology


def chain(workers: int) -> Topology:
  """A ring that is cut open: neighbours are `i - 1` and `i + 1`, if they exist.

  Symmetric, with weights 1/3. From 3 workers on, the spectral gap is `2/3 (1 -
  cos(pi / workers))`, about `3.3 / workers**2`: a quarter of the ring's.

  Args:
    workers: any number, 1 or more.

  Raises:
    TypeError: if `workers` is not an integer.
    ValueError: if it is less than 1.

  Example:
    >>> chain(8)
    Topology('chain', workers=8, degree=2, period=1, spectral_gap=0.05075)
  """
  workers = arguments.count('chain', workers=workers)
  return weights.metropolis_hastings('chain', _chain(workers))


def grid(rows: int, columns: int) -> Topology:
  """Neighbours above, below, left and right; none beyond the border.

  Worker `r * columns + c` is in row `r` and column `c`. Symmetric, with the
  weight `1 / (1 + d)` on a link whose busier end has `d` neighbours: 1/5 inside
  of the grid and across its border, 1/4 along it. `decopt.torus` joins
  opposite borders, which makes it up to four times as quick to agree.

  Args:
    rows: any number, 1 or more.
    columns: likewise; the number of workers is `rows * columns`.

  Raises:
    TypeError: if a side is not an integer.
    ValueError: if a side is less than 1.

  Example:
    >>> grid(3, 4)
    Topology('grid', workers=12, degree=4, period=1, spectral_gap=0.1364)
  """
  rows = arguments.count('grid', rows=rows)
  columns = arguments.count('grid', columns=columns)
  along_columns = np.kron(_chain(rows), np.eye(columns, dtype=bool))
  along_rows = np.kron(np.eye(rows, dtype=bool), _chain(columns))
  return weights.metropolis_hastings('grid', along_columns | along_rows)


def star(workers: int) -> Topology:
  """Worker 0 is the neighbour of all others, which have no other neighbour.

  Symmetric, with weights `1 / workers` on every link; from 3 workers on the
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
  workers = arguments.count('star', workers=workers)
  meets = np.zeros((workers, workers), bool)
  meets[0, 1:] = meets[1:, 0] = True
  return weights.metropolis_hastings('star', meets)


def binary_tree(workers: int) -> Topology:
  """The neighbours of worker `i` are `(i - 1) // 2`, `2 i + 1` and `2 i + 2`.

  Worker 0 is the root, and levels are filled one after the other. Symmetric,
  with at most 3 neighbours and weights 1/4 or more. News travels fast, but all
  of it through the root: the spectral gap comes down to `1 / (4 workers)` for
  many workers, and is a half more for 15.

  Args:
    workers: any number, 1 or more.

  Raises:
    TypeError: if `workers` is not an integer.
    ValueError: if it is less than 1.

  Example:
    >>> binary_tree(15)
    Topology('binary_tree', workers=15, degree=3, period=1, spectral_gap=0.0242)
  """
  workers = arguments.count('binary_tree', workers=workers)
  child = np.arange(1, workers)
  parent = (child - 1) // 2
  meets = np.zeros((workers, workers), bool)
  meets[parent, child] = meets[child, parent] = True
  return weights.metropolis_hastings('binary_tree', meets)


def davis_social(workers: int = 32) -> Topology:
  """Who went to which party: 18 women of Natchez, and 14 events of one season.

  Workers 0 to 17 are the women, 18 to 31 the events; a woman and an event that
  she attended are neighbours. A real social network that is small and uneven:
  2 to 14 neighbours, symmetric weights.

  Args:
    workers: 32, which is what there is.

  Raises:
    TypeError: if `workers` is not an integer.
    ValueError: if it is not 32.

  Example:
    >>> topology = davis_social()
    >>> topology.degree, round(topology.spectral_gap(), 3)
    (14, 0.082)

  References:
    Davis, Gardner and Gardner, Deep South, 1941.
  """
  import networkx  # slow to import, and only needed here

  workers = arguments.count('davis_social', workers=workers)
  if workers != 32:
    raise ValueError(
      f'davis_social has 32 workers, but got {workers}. Use '
      'decopt.davis_social(32); or, as uneven and for any number, '
      f'decopt.barabasi_albert({workers}).'
    )
  graph = networkx.convert_node_labels_to_integers(
    networkx.davis_southern_women_graph()
  )
  return weights.metropolis_hastings('davis_social', links.of_graph(graph))


def _chain(workers: int) -> np.ndarray:
  return np.eye(workers, k=1, dtype=bool) | np.eye(workers, k=-1, dtype=bool)
