"""Gossip SGD by hand: the programs that decopt is held against.

Each is what one would write for this one algorithm on this one layout and for
nothing else: plain JAX, no optimizer library, parameters updated in place
(donated), neighbours read by rolling an array, many steps in one dispatch. Each
is a *form* of the same arithmetic. Which form is fastest depends on the model
and on the machine, so `cases.measure` lets them compete.

A form takes ``(loss, params, workers, rate)``: the loss of one worker's batch,
one worker's parameters, equal for all at the start, the number of workers and
the step size. It returns ``(run, state)`` with ``run(state, data, indices) ->
(state, losses)``; ``data`` are fields ``[examples, ...]``, ``indices`` int32
``[workers, steps, batch]`` and losses ``[workers, steps]``.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Loss = Callable[[Any, dict[str, jax.Array]], jax.Array]


def leaves(loss: Loss, params: Any, workers: int, rate: float):
  """One buffer for each parameter, with all workers in it, and `jax.vmap`."""

  def step(stacked, batch):
    losses, gradients = jax.vmap(jax.value_and_grad(loss))(stacked, batch)
    stacked = jax.tree.map(
      lambda x, g: _ring_mean(x - rate * g), stacked, gradients
    )
    return stacked, losses

  return _scanned(step), jax.tree.map(lambda x: _copies(x, workers), params)


def flat(loss: Loss, params: Any, workers: int, rate: float):
  """One buffer ``[workers, size]`` for everything, and `jax.vmap`."""
  gradient = flat_gradient(loss, params)

  def step(rows, batch):
    losses, gradients = jax.vmap(gradient)(rows, batch)
    return _ring_mean(rows - rate * gradients), losses

  return _scanned(step), _copies(jax.jit(pack)(params), workers)


def apart(loss: Loss, params: Any, workers: int, rate: float):
  """Buffers of their own for each worker, and a program that repeats."""

  def step(trees, batch):
    losses, moved = [], []
    for worker, tree in enumerate(trees):
      own = jax.tree.map(lambda x, i=worker: x[i], batch)
      value, gradient = jax.value_and_grad(loss)(tree, own)
      losses.append(value)
      moved.append(
        jax.tree.map(lambda x, g: _finished(x - rate * g), tree, gradient)
      )
    mixed = [
      jax.tree.map(_mean, moved[i], moved[i - 1], moved[(i + 1) % workers])
      for i in range(workers)
    ]
    return mixed, jnp.stack(losses)

  copies = [jax.tree.map(jnp.array, params) for _ in range(workers)]
  return _scanned(step), copies


def one_batch(loss: Loss, params: Any, workers: int, rate: float):
  """All-reduce of gradients: one model, all workers' examples as one batch."""
  del workers

  def step(tree, batch):
    batch = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), batch)
    value, gradient = jax.value_and_grad(loss)(tree, batch)
    return jax.tree.map(lambda x, g: x - rate * g, tree, gradient), value

  return _scanned(step), jax.tree.map(jnp.array, params)


def flat_gradient(loss: Loss, params: Any):
  """Returns ``(x, batch) -> (loss, gradient)`` for parameters in a flat array.

  On CPU this is a tenth faster than differentiating through `unpack`, whose
  gradient is a sum of padded arrays.
  """

  def value_and_gradient(x, batch):
    value, gradient = jax.value_and_grad(loss)(unpack(x, params), batch)
    return value, pack(gradient)

  return value_and_gradient


def pack(tree: Any) -> jax.Array:
  """Gathers all arrays of a tree into a flat one.

  They are concatenated as rows: XLA on CPU can take 100 times as long to
  concatenate arrays of one axis.
  """
  rows = [x.reshape(1, -1) for x in jax.tree.leaves(tree)]
  return jnp.concatenate(rows, axis=1)[0]


def unpack(x: jax.Array, like: Any) -> Any:
  """Undoes `pack`: returns a tree of the shapes of ``like``."""
  leaves, treedef = jax.tree.flatten(like)
  parts, start = [], 0
  for leaf in leaves:
    parts.append(x[start : start + leaf.size].reshape(leaf.shape))
    start += leaf.size
  return jax.tree.unflatten(treedef, parts)


def gather(data: dict[str, jax.Array], rows: jax.Array):
  """Returns the examples at ``rows``, which are known to be valid indices."""
  return jax.tree.map(lambda x: x.at[rows].get(mode='promise_in_bounds'), data)


def _scanned(step):
  """Makes a dispatch of many steps: `jax.lax.scan`, its state in place."""

  @functools.partial(jax.jit, donate_argnums=0)
  def run(state, data, indices):
    def body(state, rows):
      return step(state, gather(data, rows))

    state, losses = jax.lax.scan(body, state, jnp.swapaxes(indices, 0, 1))
    return state, jnp.swapaxes(losses, 0, -1)

  return run


def _copies(x, workers):
  # By numpy, since each shape would be a small program to compile.
  return jnp.array(np.stack([x] * workers))


def _ring_mean(x):
  """Mean of each worker with its two neighbours in a ring of at least 3."""
  x = _finished(x)
  return _mean(x, jnp.roll(x, 1, axis=0), jnp.roll(x, -1, axis=0))


def _finished(x):
  """Has ``x`` computed once, not again by each of its three readers.

  On jax 0.12 the whole step takes a fifth less; on 0.10 it makes no difference.
  """
  return jax.lax.optimization_barrier(x)


def _mean(own, left, right):
  return (own + left + right) / 3
