"""The gradient mapping: how a step of one worker becomes one of all.

| mapping | state while training | for |
|---|---|---|
| `vmap` | stacked, a leading worker axis | any layout |
| `unrolled` | each worker's buffers apart | simulation on CPU |
| `flat` | one copy for all workers | algorithms that keep workers equal |

The numbers are the same up to float rounding. A program takes its state in the
form that suits it (`enter`) and gives it back stacked (`leave`).
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

import decopt
from decopt import stacking
from decopt import unrolled as unrolling

MAPPINGS = ('auto', 'vmap', 'unrolled', 'flat')


class TrainState(NamedTuple):
  """All that a step changes, stacked: a leading worker axis outside of clocks.

  Attributes:
    params: parameters.
    model_state: what the model carries besides, such as batch statistics.
    opt_state: state of the optimizer.
  """

  params: Any
  model_state: Any
  opt_state: Any


@dataclasses.dataclass(frozen=True)
class Program:
  """A compiled training program.

  Attributes:
    mapping: the gradient mapping it uses.
    enter: stacked `TrainState` -> the form in which it is trained.
    run: ``(state, data, indices, first_step) -> (state, losses)``. ``indices``
      is int32 [workers, steps, batch], ``losses`` [workers, steps]. The state
      given is overwritten.
    leave: the form in which it is trained -> stacked `TrainState`.
  """

  mapping: str
  enter: Callable
  run: Callable
  leave: Callable


def _scan(step, state, data, indices, first_step):
  """Runs a step for each of the batches on the leading axis of ``indices``."""

  def body(state, this):
    indices, number = this
    return step(state, data, indices, number)

  numbers = first_step + jnp.arange(indices.shape[0])
  return lax.scan(body, state, (indices, numbers))


def vmapped(step, workers, mesh) -> Program:
  run = decopt.spmd(
    lambda state, indices, data, first: _scan(
      step, state, data, indices, first
    ),
    workers=workers,
    mesh=mesh,
    shared_argnums=(2, 3),
    donate_argnums=0,
  )
  return Program(
    'vmap',
    enter=lambda state: state,
    run=lambda state, data, indices, first_step: run(
      state, indices, data, jnp.asarray(first_step, jnp.int32)
    ),
    leave=lambda state: state,
  )


class _Apart(NamedTuple):
  """A `TrainState` with one list entry for each worker's buffers."""

  shared: list[Any]
  stacked: list[list[Any]]


def unrolled(step, workers) -> Program:
  structure = {}

  def enter(state):
    split = stacking.split((state,))
    structure['state'] = split
    # A copy, since the program overwrites what it is given.
    return _Apart(
      [jnp.copy(x) for x in split.shared],
      [[x[i] for i in range(workers)] for x in split.stacked],
    )

  def flat_step(shared, stacked, data_treedef, data_leaves, number):
    *leaves, indices = stacked
    (state,) = structure['state'].merge(shared, leaves)
    data = jax.tree.unflatten(data_treedef, data_leaves)
    state, loss = step(state, data, indices, number)
    after = stacking.split((state,))
    return after.shared, [*after.stacked, loss]

  def all_workers(apart, data, indices, number):
    data_leaves, treedef = jax.tree.flatten(data)
    n_clocks, n_data = len(apart.shared), len(data_leaves)

    def fn(shared, stacked):
      clocks, rest = shared[:n_clocks], shared[n_clocks:]
      return flat_step(clocks, stacked, treedef, rest[:n_data], rest[n_data])

    run = unrolling.per_worker(fn, axis_name=decopt.WORKERS, workers=workers)
    per_worker = [unrolling.PerWorker(x) for x in apart.stacked]
    per_worker.append(unrolling.PerWorker(indices[i] for i in range(workers)))
    shared, results = run([*apart.shared, *data_leaves, number], per_worker)
    *leaves, losses = [unrolling.spread(x, workers) for x in results]
    return _Apart(shared, leaves), jnp.stack(losses)

  @functools.partial(jax.jit, donate_argnums=0)
  def run(apart, data, indices, first_step):
    apart, losses = _scan(
      all_workers, apart, data, indices.swapaxes(0, 1), first_step
    )
    return apart, losses.T

  def leave(apart):
    stacked = [jnp.stack(x) for x in apart.stacked]
    return structure['state'].merge(list(apart.shared), stacked)[0]

  return Program('unrolled', enter, run, leave)


def flat(step, workers) -> Program:
  def enter(state):
    params, opt_state = decopt.worker((state.params, state.opt_state), 0)
    return jax.tree.map(
      jnp.copy, TrainState(params, state.model_state, opt_state)
    )

  @functools.partial(jax.jit, donate_argnums=0)
  def run(state, data, indices, first_step):
    state, losses = _scan(step, state, data, indices.swapaxes(0, 1), first_step)
    return state, losses.T

  def leave(state):
    params, opt_state = decopt.replicate(
      (state.params, state.opt_state), workers
    )
    return TrainState(params, state.model_state, opt_state)

  return Program('flat', enter, run, leave)
