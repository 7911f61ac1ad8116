"""Arrays of weights: which ones a topology takes, and what is read off them."""

import numpy as np

TOLERANCE = 1e-12  # of sums and of symmetry
_CLOSE = 1e-3  # sums that are meant to be 1


def sum_to_one(weights: np.ndarray, axis: int) -> bool:
  """Whether all rows (axis -1) or columns (axis -2) do, within 1e-12."""
  return bool(_sum_to_one(weights, axis).all())


def reached(links: np.ndarray, start: int = 0) -> np.ndarray:
  """bool `[workers]`: whom a message gets to; `links[receiver, sender]`."""
  found = np.zeros(len(links), bool)
  new = np.array([start])
  while new.size:
    found[new] = True
    new = np.flatnonzero(links[:, new].any(axis=1) & ~found)
  return found


def parts(links: np.ndarray) -> list[np.ndarray]:
  """Sets of workers, of whom messages get from each to all others of its set.

  Args:
    links: bool `[workers, workers]`.
  """
  from scipy.sparse import csgraph  # slow to import, and only needed here

  count, labels = csgraph.connected_components(links, connection='strong')
  return [np.flatnonzero(labels == label) for label in range(count)]


def checked(weights, name: str) -> np.ndarray:
  """Weights as a read-only float64 array `[period, workers, workers]`.

  Raises the error that says what is wrong with them, if anything; `name` is
  that of the topology.
  """
  array = _as_array(weights, name)
  if array.ndim == 2:
    array = array[None]
  _check(array, name)
  array.setflags(write=False)
  return array


def _as_array(weights, name: str) -> np.ndarray:
  """A float64 copy, without a sign on zeros: equal weights have equal bytes."""
  try:
    array = np.asarray(weights)
  except ValueError:
    raise ValueError(
      f'topology {name!r} needs weights in rows of equal length, but they are '
      'not.'
    ) from None
  if array.dtype.kind not in 'buif' and array.dtype.name != 'bfloat16':
    raise TypeError(
      f'topology {name!r} needs weights that are real numbers, but got '
      f'{array.dtype} in a {type(weights).__name__}. Give a matrix: '
      "decopt.Topology([[0.5, 0.5], [0.5, 0.5]], 'mine'); or take a graph by "
      'its name: decopt.ring(8).'
    )
  array = array.astype(np.float64)  # a copy
  array += 0.0
  return array


def _check(weights: np.ndarray, name: str) -> None:
  if (
    weights.ndim != 3
    or weights.shape[1] != weights.shape[2]
    or not weights.size
  ):
    raise ValueError(
      f'topology {name!r} needs weights of shape [period, workers, workers] or '
      f'[workers, workers], none of them 0, but got {list(weights.shape)}.'
    )
  for problem, bad in (
    ('finite', ~np.isfinite(weights)),
    ('zero or positive', weights < 0),
  ):
    if bad.any():
      t, receiver, sender = np.argwhere(bad)[0].tolist()
      raise ValueError(
        f'topology {name!r} needs {problem} weights, but weights[{t}, '
        f'{receiver}, {sender}] is {weights[t, receiver, sender]}.'
      )
  rows, columns = _sum_to_one(weights, -1), _sum_to_one(weights, -2)
  if not rows.all() and not columns.all():
    t, receiver = np.argwhere(~rows)[0].tolist()
    s, sender = np.argwhere(~columns)[0].tolist()
    raise ValueError(
      f'topology {name!r} needs rows that sum to 1 (or columns, for push-sum), '
      f'in all rounds, but row {receiver} of round {t} sums to '
      f'{weights[t, receiver].sum():.15g} and column {sender} of round {s} to '
      f'{weights[s, :, sender].sum():.15g}. {_advice(weights)}'
    )


def _advice(weights: np.ndarray) -> str:
  """Which sums to divide by, and whether in more digits."""
  errors = [np.abs(weights.sum(axis=axis) - 1).max() for axis in (-1, -2)]
  axis = -1 if errors[0] <= errors[1] else -2
  if min(errors) > _CLOSE:
    return (
      'Divide the rows by their sums: '
      'weights / weights.sum(axis=-1, keepdims=True).'
    )
  return (
    'Divide by the sums in float64, as float32 has too few digits: '
    'w = np.asarray(weights, np.float64); '
    f'w / w.sum(axis={axis}, keepdims=True).'
  )


def _sum_to_one(weights: np.ndarray, axis: int) -> np.ndarray:
  return np.abs(weights.sum(axis=axis) - 1) <= TOLERANCE
