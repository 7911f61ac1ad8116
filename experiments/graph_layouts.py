"""Where to draw the workers of a graph, so that its structure shows.

What a graph looks like is read off its links and not off its name: a ring that
comes from a file is a ring.
"""

import networkx
import numpy as np

#: From this density on, or of more workers, a circle is as good as anything.
_DENSE = 1 / 3
_MANY = 100


def positions(links: np.ndarray) -> np.ndarray:
  """Returns a place for each worker, float `[workers, 2]`, in about [-1, 1].

  Args:
    links: bool `[period, workers, workers]`, one way or both ways.

  Example:
    >>> import decopt
    >>> positions(decopt.star(5).links)[0].tolist()  # in the middle
    [0.0, 0.0]
  """
  period, workers, _ = links.shape
  links = links.any(axis=0)
  links = links | links.T
  if _is_circle(links):
    return _circle(workers)
  columns = grid_columns(links)
  if columns:
    return _grid(workers, columns)
  graph = networkx.from_numpy_array(links)
  if period > 1 or not networkx.is_connected(graph):
    return _circle(workers)
  if networkx.is_tree(graph):
    return _tree(graph)
  if workers > _MANY or links.mean() > _DENSE:
    return _circle(workers)
  found = networkx.kamada_kawai_layout(graph, pos=_scaled_distances(graph))
  places = np.array([found[worker] for worker in range(workers)])
  return _fitted(_spread(_fitted(places)))


def grid_columns(links: np.ndarray) -> int | None:
  """Returns the columns of a grid or torus with two rows and columns or more.

  Args:
    links: bool `[workers, workers]`, symmetric.
  """
  workers = len(links)
  for columns in range(2, workers // 2 + 1):
    if workers % columns == 0:
      sides = (workers // columns, columns)
      for ends in (False, True):
        if np.array_equal(links, _grid_links(*sides, joined=ends)):
          return columns
  return None


def _is_circle(links: np.ndarray) -> bool:
  """Says whether it looks the same from each worker, around; or is a chain."""
  line = np.eye(len(links), k=1, dtype=bool)
  shifted = np.roll(links, (1, 1), axis=(0, 1))
  return any(np.array_equal(links, other) for other in (shifted, line | line.T))


def _circle(workers: int) -> np.ndarray:
  if workers == 1:
    return np.zeros((1, 2))
  angles = np.pi / 2 - 2 * np.pi * np.arange(workers) / workers  # a clock's
  return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _grid(workers: int, columns: int) -> np.ndarray:
  rows, column = np.divmod(np.arange(workers), columns)
  return _fitted(np.stack([column, -rows], axis=1).astype(float))


def _grid_links(rows: int, columns: int, *, joined: bool) -> np.ndarray:
  along = []
  for side in (rows, columns):
    line = np.eye(side, k=1, dtype=bool)
    if joined:
      line[-1, 0] = side > 1
    along.append(line | line.T)
  down = np.kron(along[0], np.eye(columns, dtype=bool))
  return down | np.kron(np.eye(rows, dtype=bool), along[1])


def _tree(graph) -> np.ndarray:
  """Places a tree around its middle; each branch gets room for its leaves."""
  root = networkx.center(graph)[0]
  places = np.zeros((len(graph), 2))
  down = networkx.bfs_tree(graph, root)
  leaves = {}
  for worker in reversed(list(down)):
    leaves[worker] = sum(leaves[child] for child in down[worker]) or 1
  angles = {root: (0.0, 2 * np.pi, 0)}  # where a branch starts and ends, depth
  for worker in down:
    start, end, depth = angles[worker]
    middle = np.pi / 2 - (start + end) / 2
    if depth:
      places[worker] = depth * np.cos(middle), depth * np.sin(middle)
    each = (end - start) / leaves[worker]
    for child in down[worker]:
      end = start + each * leaves[child]
      angles[child] = (start, end, depth + 1)
      start = end
  return places / max(1, np.abs(places).max())


def _scaled_distances(graph) -> dict:
  """Places workers by multidimensional scaling: a start without chance."""
  distances = np.asarray(networkx.floyd_warshall_numpy(graph)) ** 2
  distances -= distances.mean(axis=0)
  distances -= distances.mean(axis=1, keepdims=True)
  sizes, axes = np.linalg.eigh(-distances / 2)
  places = axes[:, -2:] * sizes[-2:] ** 0.5
  # Workers with the same neighbours would start at the same place.
  return dict(enumerate(places + 0.05 * _circle(len(places))))


def _spread(places: np.ndarray) -> np.ndarray:
  """Moves workers apart that are too close for their circles."""
  least = 0.8 / len(places) ** 0.5
  for _ in range(60):
    offsets = places[:, None] - places
    apart = np.linalg.norm(offsets, axis=-1, keepdims=True)
    missing = np.clip(least - apart, 0, None) / 2
    places = places + (offsets / np.maximum(apart, 1e-9) * missing).sum(axis=1)
  return places


def _fitted(places: np.ndarray) -> np.ndarray:
  """Centres places, and scales them to [-1, 1] without distortion."""
  low, high = places.min(axis=0), places.max(axis=0)
  return (2 * places - low - high) / max((high - low).max(), 1e-9)
