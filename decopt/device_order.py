"""Which worker on which device: neighbours of a graph on linked devices.

The chips of a TPU slice form a grid, and a message to the chip next door takes
one link where one across the grid takes many. Devices are therefore numbered
along a closed walk through the grid, each one step from the last, and a ring of
workers sends over single links only. Where devices have no coordinates (CPUs,
GPUs), those of one host get consecutive numbers.

Devices are any objects with the attributes of `jax.Device` that are used here:
``id``, ``process_index`` and, where they exist, ``slice_index``, ``coords`` and
``core_on_chip``.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

Cell = tuple[int, ...]


def ring_order(devices: Iterable[Any]) -> list[Any]:
  """Orders devices so that each is linked to the next, as far as can be.

  In a grid of devices consecutive ones differ by one step in one coordinate,
  and so do the last and the first, if the grid has a closed walk: if it is not
  a line and a side is even. In others the first and the last are the ends of
  one line of the grid, which hardware may close. Slices come one after the
  other.

  Args:
    devices: those to order.
  """
  slices = _by_slice(devices)
  return [device for part in slices for device in _in_slice(part)]


def torus_order(devices: Iterable[Any], rows: int, columns: int) -> list[Any]:
  """Orders devices row by row so that neighbours in a torus are linked.

  The sides of the grid of devices are shared out between rows and columns, and
  each share is walked like the grid in `ring_order`. Where no shares have the
  right sizes, the order is that of `ring_order`, in which the neighbours in a
  row are linked. Several slices take rows in turn.

  Args:
    devices: those to order; as many as the torus has places.
    rows: rows of the torus.
    columns: its columns.
  """
  devices = list(devices)
  slices = _by_slice(devices)
  heights = [len(part) // columns for part in slices]
  if any(len(part) % columns for part in slices) or sum(heights) != rows:
    return ring_order(devices)
  ordered = []
  for part, height in zip(slices, heights, strict=True):
    ordered += _torus_in_slice(part, height, columns)
  return ordered


def machine_order(devices: Iterable[Any]) -> list[Any]:
  """Like `ring_order`, but devices of one process stay together.

  Args:
    devices: those to order.
  """
  along = ring_order(devices)
  return [device for mine in by_process(along) for device in ring_order(mine)]


def by_process(devices: Iterable[Any]) -> list[list[Any]]:
  """Groups devices by slice and process, in the order of their first ones.

  Args:
    devices: those to group.
  """
  groups: dict[Any, list[Any]] = {}
  for device in devices:
    key = _slice(device), device.process_index
    groups.setdefault(key, []).append(device)
  return list(groups.values())


def grid_ring(sides: Sequence[int]) -> list[Cell]:
  """Returns a walk through a grid that visits each cell once.

  Each step goes to an adjacent cell. If the grid has more than one side longer
  than 1, and an even one among them, the last cell is adjacent to the first;
  else the two are the ends of one line of the grid.

  Args:
    sides: lengths of the grid, any number of them.

  Example:
    >>> grid_ring((2, 3))
    [(0, 0), (0, 1), (0, 2), (1, 2), (1, 1), (1, 0)]
  """
  long = [k for k, side in enumerate(sides) if side > 1]
  if not long:
    return [(0,) * len(sides)]
  # All sides but one make a path; with the last one it is a grid of two sides.
  *others, last = long
  path = _snake([sides[k] for k in others])
  walk = []
  for row, column in _plane_ring(sides[last], len(path)):
    cell = [0] * len(sides)
    for k, value in zip(others, path[column], strict=True):
      cell[k] = value
    cell[last] = row
    walk.append(tuple(cell))
  return walk


def is_closed(sides: Sequence[int]) -> bool:
  """Says whether `grid_ring` ends next to where it began.

  Args:
    sides: lengths of the grid.
  """
  long = [side for side in sides if side > 1]
  if len(long) < 2:
    return math.prod(sides) <= 2
  return any(side % 2 == 0 for side in long)


def _snake(sides: Sequence[int]) -> list[Cell]:
  """A walk through a grid that turns round at the end of each line."""
  walk = [()]
  for side in sides:
    line = range(side)
    walk = [
      (*cell, value)
      for turn, cell in enumerate(walk)
      for value in (line if turn % 2 == 0 else reversed(line))
    ]
  return walk


def _plane_ring(rows: int, columns: int) -> list[Cell]:
  """A closed walk through a grid, or from end to end of its first column."""
  if columns == 1:
    return [(row, 0) for row in range(rows)]
  if rows % 2 == 0:
    # There through all columns but the first, back along that one.
    comb = [(row, column + 1) for row, column in _snake((rows, columns - 1))]
    return [(0, 0), *comb, *((row, 0) for row in range(rows - 1, 0, -1))]
  if columns % 2 == 0:
    return [(row, column) for column, row in _plane_ring(columns, rows)]
  # Two rows are walked in columns, so that the others, an odd number, begin at
  # the last column and end in the first.
  first = [(row, column) for column, row in _snake((columns, 2))]
  rest = _snake((rows - 2, columns))
  return first + [(row + 2, columns - 1 - column) for row, column in rest]


def _in_slice(devices: Sequence[Any]) -> list[Any]:
  placed = _cells(devices)
  if placed is None:
    return list(devices)
  cells, sides = placed
  return [cells[cell] for cell in grid_ring(sides) if cell in cells]


def _torus_in_slice(devices, rows, columns) -> list[Any]:
  placed = _cells(devices)
  if placed is None:
    return list(devices)
  cells, sides = placed
  shares = [
    share
    for share in itertools.product((False, True), repeat=len(sides))
    if math.prod(itertools.compress(sides, share)) == rows
  ]
  if len(cells) != math.prod(sides) or not shares:
    return _in_slice(devices)

  def parts(share):
    pairs = list(zip(sides, share, strict=True))
    down = [side if is_row else 1 for side, is_row in pairs]
    return down, [1 if is_row else side for side, is_row in pairs]

  best = max(shares, key=lambda share: sum(map(is_closed, parts(share))))
  down, along = map(grid_ring, parts(best))
  return [cells[tuple(np.add(a, b).tolist())] for a in down for b in along]


def _cells(devices) -> tuple[dict[Cell, Any], Cell] | None:
  """Returns cell -> device and the sides of the grid, if there is one."""
  cells = {}
  for device in devices:
    coords = getattr(device, 'coords', None)
    if coords is None:
      return None
    # The cores of a chip are one more side of the grid.
    cells[(*coords, getattr(device, 'core_on_chip', 0) or 0)] = device
  if len(cells) < len(devices):
    return None  # coordinates that do not tell devices apart
  low, high = np.min(list(cells), axis=0), np.max(list(cells), axis=0)
  moved = {
    tuple((np.array(cell) - low).tolist()): device
    for cell, device in cells.items()
  }
  return moved, tuple((high - low + 1).tolist())


def _slice(device) -> int:
  return getattr(device, 'slice_index', 0) or 0


def _by_slice(devices) -> list[list[Any]]:
  def position(device):
    return _slice(device), device.process_index, device.id

  ordered = sorted(devices, key=position)
  return [list(group) for _, group in itertools.groupby(ordered, _slice)]
