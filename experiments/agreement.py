"""How fast workers agree that do nothing but average with their neighbours."""

import math
from collections.abc import Sequence

import numpy as np

import decopt

#: Disagreement below this is agreement: curves need not go on.
FLOOR = 1e-6
#: The disagreement that reports count rounds to.
TARGET = 1e-3
_LARGE = 256  # workers from which on singular values take long
_WORK = 1e10  # of following all rounds, in multiplications


def consensus_errors(topology: decopt.Topology, rounds: int) -> np.ndarray:
  r"""Returns what is left of the worst disagreement after 0, 1, ... rounds.

  .. math:: e_t = \| (I - J) D_t^{-1} P_t \|_2, \qquad
    P_t = W^{(t-1)} \cdots W^{(0)}, \quad D_t = \mathrm{diag}(P_t 1)

  with :math:`J` the matrix of 1 / workers: the largest distance of the workers
  from their mean for starts of length 1. Where rows sum to 1, :math:`D_t` is
  the identity; else it is the weight that push-sum divides by.

  Args:
    topology: any.
    rounds: how many to follow.

  Returns:
    Floats, ``rounds + 1`` of them, or as many as there are until one is below
    `FLOOR`. NaN where a worker holds nothing, because it sent all it had.

  Example:
    >>> consensus_errors(decopt.star(4), 2).round(4).tolist()
    [1.0, 0.75, 0.5625]
  """
  product = np.eye(topology.workers)
  found = [_disagreement(product)]
  while len(found) <= rounds and not found[-1] < FLOOR:
    weights = topology.weights[(len(found) - 1) % topology.period]
    product = weights @ product
    found.append(_disagreement(product))
  return np.array(found)


def bytes_sent(
  topology: decopt.Topology, rounds: int, message_bytes: float
) -> np.ndarray:
  """Returns bytes sent after 0, 1, ... rounds, the mean over workers."""
  messages = topology.links.sum(axis=(1, 2)) / topology.workers
  each = np.resize(messages, rounds) * message_bytes
  return np.concatenate([[0], np.cumsum(each)])


def horizon(reports: Sequence[decopt.Report]) -> int:
  """Returns the rounds that show how topologies differ.

  One is followed to `TARGET` and a little on. Of several the fastest says how
  long to look, where others are much slower. Of graphs that take long to agree
  or to compute, the first rounds have to do.

  Args:
    reports: of the topologies.
  """
  needed = [
    math.inf if report.rounds_to is None else report.rounds_to
    for report in reports
  ]
  look = 1.25 * max(needed)
  if reports[1:]:
    look = min(look, max(30, 6 * min(needed)))
  workers = max(report.workers for report in reports)
  return math.ceil(min(look, np.clip(_WORK / workers**3, 30, 1000))) + 1


def _disagreement(product: np.ndarray) -> float:
  held = product.sum(axis=1, keepdims=True)
  if not held.all():
    return math.nan
  values = product / held
  return _largest_singular_value(values - values.mean(axis=0))


def _largest_singular_value(matrix: np.ndarray) -> float:
  """Exact for small matrices; of large ones by a few steps of iteration."""
  if len(matrix) > _LARGE:
    vectors = np.random.default_rng(0).normal(size=(len(matrix), 16))
    for _ in range(12):
      vectors, _ = np.linalg.qr(matrix.T @ (matrix @ vectors))
    matrix = matrix @ vectors
  return float(np.linalg.norm(matrix, ord=2))
