"""Graphs in which those that a worker hears are not as many as hear it."""

import numpy as np

from decopt import arguments
from decopt import weights
from decopt.graphs import links
from decopt.topology import Topology


def random_out_degree(
  workers: int, degree: int = 2, *, seed: int = 0
) -> Topology:
  """Each worker sends to as many random others; how many it hears differs.

  Directed, and column-stochastic: a worker keeps `1 / (degree + 1)` of what it
  has and sends as much to each of `degree` others. The sum over workers is
  preserved, but rows do not sum to 1, so that plain averaging goes to another
  point than the mean: use push-sum.

  Everyone can reach everyone: one of those that a worker sends to is the next
  on a random circle through all. With a degree of 1 there is nothing else, and
  all rows sum to 1; so they do if everyone sends to everyone, which is the case
  for `degree + 1` workers or fewer. Else numbers of heard workers differ, for
  which links are drawn again if need be.

  Args:
    workers: any number, 1 or more.
    degree: how many others each worker sends to, 1 or more.
    seed: of the draws; 0 or more.

  Raises:
    TypeError: if an argument is not an integer.
    ValueError: if one is too small.

  Example:
    >>> topology = random_out_degree(8)
    >>> topology.is_column_stochastic(), topology.is_row_stochastic()
    (True, False)

  References:
    Nedic and Olshevsky, `Stochastic Gradient-Push for Strongly Convex Functions
    on Time-Varying Directed Graphs <https://arxiv.org/abs/1406.2075>`_, 2014.
  """
  workers = arguments.count('random_out_degree', workers=workers)
  degree = arguments.count('random_out_degree', degree=degree)
  rng = np.random.default_rng(
    arguments.count('random_out_degree', seed=seed, least=0)
  )
  degree = min(degree, workers - 1)
  even = degree in (0, 1, workers - 1)
  return links.first_drawn(
    lambda: _draw(rng, workers, degree),
    lambda topology: even or not topology.is_row_stochastic(),
    f'random_out_degree found only graphs in which all of {workers} workers '
    f'hear {degree} others. Use another seed or degree.',
  )


def _draw(rng, workers: int, degree: int) -> Topology:
  heard = np.eye(workers, dtype=bool)
  circle = rng.permutation(workers)
  heard[np.roll(circle, -1), circle] = True
  for sender in range(workers):
    others = np.flatnonzero(~heard[:, sender])
    more = degree + 1 - heard[:, sender].sum()
    heard[rng.choice(others, more, replace=False), sender] = True
  return weights.uniform_columns('random_out_degree', heard)
