"""Messages that arrive some applications after they were sent.

A worker keeps what is on its way to it: the weighted sum over its neighbours
of each of the last rounds. A slot is read when its time has come, and then
holds what is sent now, so that nothing is moved.
"""

import numbers
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from decopt import base


class InFlight(NamedTuple):
  """What is on its way to a worker for `k` rounds.

  Attributes:
    sums: tree like the parameters, with a leading axis `[k]`: weighted sums
      over neighbours. Zero where nothing has been sent yet.
    shares: `[k]`, the sums of these weights.
  """

  sums: Any
  shares: jax.Array


def start(tree, delay: int) -> InFlight:
  """Returns a queue of ``delay`` rounds in which nothing has been sent."""
  sums = jax.tree.map(lambda x: jnp.zeros((delay, *x.shape), x.dtype), tree)
  return InFlight(sums, jnp.zeros(delay))


def exchange(queue: InFlight, slot, sent: InFlight):
  """Takes what is in a slot and leaves there what is sent now.

  Args:
    queue: what is on its way.
    slot: int32 scalar, the round modulo ``delay``.
    sent: sums and share of this round, without the leading axis.

  Returns:
    ``(arrived, queue)``.
  """

  def take(buffer):
    return lax.dynamic_index_in_dim(buffer, slot, keepdims=False)

  def put(buffer, value):
    return lax.dynamic_update_index_in_dim(buffer, value, slot, 0)

  # With the barrier a slot is read before it is overwritten, and jax 0.12 does
  # that in place; without, it copies the whole queue at every step.
  arrived, sent = lax.optimization_barrier((jax.tree.map(take, queue), sent))
  return arrived, jax.tree.map(put, queue, sent)


def shares_of_others(topology, step, weights) -> jax.Array:
  """Returns what each worker puts on all others together: `[workers]`.

  Args:
    topology: the graph with its weights.
    step: the round is ``step % topology.period``.
    weights: `[workers, workers]` in the place of this round's, or None.
  """
  others = ~np.eye(topology.workers, dtype=bool)
  if weights is not None:
    return jnp.where(others, weights, 0).sum(axis=-1)
  shares = np.where(others, topology.weights, 0).sum(axis=-1)
  shares = jnp.asarray(shares, jnp.result_type(float))
  return shares[step % topology.period]


def join(tree, arrived: InFlight):
  """Returns the fresh own values with their shares, plus what arrived."""

  def join_leaf(own, others):
    dtype = base.wide(own.dtype)
    kept = (1 - arrived.shares).astype(dtype) * own.astype(dtype)
    return (kept + others.astype(dtype)).astype(own.dtype)

  return jax.tree.map(join_leaf, tree, arrived.sums)


def check(delay) -> int:
  """Returns the delay, or raises what is wrong with it."""
  if isinstance(delay, bool) or not isinstance(delay, numbers.Integral):
    raise TypeError(
      f'gossip got delay={delay!r} of type {type(delay).__name__}; it must be '
      'an int, the applications that a message takes.'
    )
  if delay < 0:
    raise ValueError(f'gossip got delay={delay}; it must be 0 or more.')
  return int(delay)
