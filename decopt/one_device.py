"""How a weighted sum over neighbours is taken where all share one device.

There a message is a read, and who is heard is a table of indices. `gathered`
reads a row for each neighbour, `dense` multiplies by the whole matrix. Both
look the round up in their tables, so that a graph with a period costs one
program and not one for each round: without that, 64 workers on a one-peer
exponential graph took three times as long to compile as on a ring.
"""

import functools
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import lax

from decopt import axes
from decopt import base
from decopt import topology as topology_lib
from decopt.exchanges import DENSE_FACTOR
from decopt.exchanges import Exchange
from decopt.exchanges import product
from decopt.exchanges import Sum
from decopt.exchanges import take_received
from decopt.exchanges import weighted

# With every worker's buffers apart they must first be put into one array, and
# the sum over neighbours is faster on all but nearly complete graphs (0.5
# against 1.0 ms for a ring of 8, 2.9 against 39 ms for 32 and 5 neighbours).
_DENSE_FACTOR_APART = 2
# Rounds of several degrees share a program if this reads at most so many times
# the rows that they need.
_MOST_PADDING = 2


def is_dense(topology: topology_lib.Topology, t: int) -> bool:
  """Says whether to multiply by the whole matrix of a round."""
  neighbours = len(topology.permutations(t))
  factor = _DENSE_FACTOR_APART if axes.is_unrolled() else DENSE_FACTOR
  return factor * (neighbours + 1) > topology.workers > 2


def of_any_round(
  topology: topology_lib.Topology,
) -> Callable[[Sum, axes.Axis], Exchange] | None:
  """Returns the exchange that does for each round, if one does.

  With every worker's buffers apart a message is no index into an array, and
  only the product with a matrix can be looked up.
  """
  degrees = [len(topology.permutations(t)) for t in range(topology.period)]
  kinds = {is_dense(topology, t) for t in range(topology.period)}
  if kinds == {True}:
    return dense
  padded = max(degrees) * len(degrees) > _MOST_PADDING * sum(degrees)
  if axes.is_unrolled() or len(kinds) > 1 or padded:
    return None
  return gathered


def gathered(total: Sum, axis: axes.Axis) -> Exchange:
  """One read of everybody's rows for each neighbour."""
  index = lax.axis_index(axis.name)
  origins, weights = _table(total.topology)

  def mine(table):
    return jnp.asarray(table)[total.t, index]

  @functools.cache
  def coefficients(dtype):
    if total.weights is None:
      return [_looked_up(w, mine, dtype) for w in np.moveaxis(weights, -1, 0)]
    reads = weights > 0
    reads[..., 0] = True
    return list(total.read(index, mine(origins), mine(reads), dtype))

  heard = mine(origins[..., 1:])

  def send(x):
    everyone = lax.all_gather(x, axis.name)
    return [
      lax.dynamic_index_in_dim(
        everyone, source, keepdims=False, allow_negative_indices=False
      )
      for source in heard
    ]

  return Exchange(send, weighted(coefficients, total.own))


def dense(total: Sum, axis: axes.Axis) -> Exchange:
  """One product with the matrix."""
  index = lax.axis_index(axis.name)
  matrices = total.topology.weights
  myself = np.eye(axis.workers, dtype=bool)

  @functools.cache
  def row(dtype):
    if total.weights is None:
      summed = matrices * (total.own | ~myself)
      return jnp.asarray(summed, dtype)[total.t, index]
    reads = np.where(myself, total.own, matrices > 0)
    mine = jnp.asarray(reads)[total.t, index]
    return total.read(index, np.arange(axis.workers), mine, dtype)

  def send(x):
    dtype = base.wide(x.dtype)
    everyone = lax.all_gather(x, axis.name).astype(dtype)
    return [product(row(dtype), everyone, x.dtype)]

  return Exchange(send, take_received)


def _looked_up(column, mine, dtype):
  """This worker's entry in this round, a constant where all agree."""
  if (column == column[0, 0]).all():
    return np.asarray(column[0, 0], dtype)
  return mine(column.astype(dtype))


@functools.lru_cache(maxsize=64)
def _table(topology) -> tuple[np.ndarray, np.ndarray]:
  """Whom workers hear, and the weights: each [period, workers, 1 + degree].

  A worker hears itself first, and, at weight 0, again in rounds that have fewer
  neighbours than others.
  """
  rounds = [topology.permutations(t) for t in range(topology.period)]
  shape = topology.period, topology.workers, 1 + max(map(len, rounds))
  origins = np.empty(shape, np.int32)
  origins[:] = np.arange(topology.workers)[:, None]
  weights = np.zeros(shape)
  for t, permutations in enumerate(rounds):
    weights[t, :, 0] = topology.self_weights(t)
    for k, (sources, heard) in enumerate(permutations, start=1):
      origins[t, :, k], weights[t, :, k] = sources, heard
  return origins, weights
