"""The training program: several steps of all workers in one dispatch.

A step of a worker is the usual one: batch, gradient, update. This file says
how the gradients of all workers are computed, the gradient mapping:

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
import optax
from jax import lax

import decopt
from decopt import stacking
from decopt import unrolled
from experiments.workloads.base import Workload

MAPPINGS = ('auto', 'vmap', 'unrolled', 'flat')

# An unrolled program is as long as that of one worker times the number of
# workers, and XLA's compile time goes with it: about 0.35 ms an equation on
# the machine where an MLP of 16 workers took 1 s.
_LONGEST_UNROLLED = 20_000


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


def init_state(
    workload: Workload, optimizer, *, workers: int, mesh=None, seed: int = 0
) -> TrainState:
  """Initializes all workers with the same parameters.

  Args:
    workload: gives the parameters.
    optimizer: an optax transformation; its state may differ between workers.
    workers: number of workers.
    mesh: from `decopt.make_mesh`; None for a simulation.
    seed: of the parameters.
  """
  params, model_state = jax.jit(workload.init)(jax.random.key(seed))
  params = decopt.replicate(params, workers, mesh=mesh)
  model_state = decopt.replicate(model_state, workers, mesh=mesh)
  init = decopt.spmd(optimizer.init, workers=workers, mesh=mesh)
  return TrainState(params, model_state, init(params))


def make_program(
    workload: Workload,
    optimizer,
    *,
    workers: int,
    mesh=None,
    mapping: str = 'vmap',
    seed: int = 0,
) -> Program:
  """Builds the training program.

  Args:
    workload: batches and losses.
    optimizer: an optax transformation that gets gradients of one worker.
    workers: number of workers.
    mesh: from `decopt.make_mesh`; None for a simulation.
    mapping: the gradient mapping; ``'auto'`` as `choose_mapping` says.
    seed: of the keys that losses get.

  Raises:
    ValueError: for a mapping that is unknown or does not fit.
  """
  if mapping not in MAPPINGS:
    raise ValueError(
        f'gradient_mapping is {mapping!r}; it must be one of {MAPPINGS}.'
    )
  if mapping in ('unrolled', 'flat') and mesh is not None:
    raise ValueError(
        f'gradient_mapping={mapping!r} is a way to write a simulation, but the '
        "layout is a mesh; use 'vmap' or 'auto'."
    )
  params = one_worker(workload)[0]
  if mapping == 'auto':
    mapping = choose_mapping(workload, optimizer, workers=workers, mesh=mesh)
  elif mapping == 'flat' and not decopt.keeps_workers_equal(
      optimizer, params, workers
  ):
    raise ValueError(
        "gradient_mapping='flat' computes one gradient for all workers, but "
        'this algorithm lets them differ (only one that averages gradients '
        "before anything else keeps them equal); use 'vmap' or 'auto'."
    )
  step = _worker_step(workload, optimizer, jax.random.key(seed))
  if mapping == 'flat':
    step = _flat_step(workload, optimizer, jax.random.key(seed), workers)
    return _flat(step, workers)
  if mapping == 'unrolled':
    return _unrolled(step, workers)
  return _vmapped(step, workers, mesh)


def one_worker(workload: Workload):
  """Returns shapes and dtypes of one worker's (params, model_state)."""
  return jax.eval_shape(workload.init, jax.random.key(0))


def choose_mapping(
    workload: Workload, optimizer, *, workers: int, mesh=None
) -> str:
  """The rule behind ``gradient_mapping='auto'``.

  ``'flat'`` in a simulation of an algorithm that keeps all workers equal;
  ``'unrolled'`` in a simulation on CPU if the program stays short enough to
  compile, that is, equations of a worker's gradient times workers are at most
  20,000; ``'vmap'`` otherwise.
  """
  if mesh is not None:
    return 'vmap'
  params, model_state = one_worker(workload)
  if workers == 1 or decopt.keeps_workers_equal(optimizer, params, workers):
    return 'flat'
  if jax.default_backend() != 'cpu':
    return 'vmap'
  batch = {name: x[:1] for name, x in workload.train.items()}
  gradient = jax.make_jaxpr(jax.grad(workload.loss, has_aux=True))(
      params, model_state, batch, jax.random.key(0)
  )
  short = workers * len(gradient.eqns) <= _LONGEST_UNROLLED
  return 'unrolled' if short else 'vmap'


def _worker_step(workload, optimizer, key):
  """One step of one worker."""

  def step(state, data, indices, number):
    batch = _gather(data, indices)
    mine = _key(key, number, decopt.worker_index())
    grad_fn = jax.value_and_grad(workload.loss, has_aux=True)
    (loss, model_state), grads = grad_fn(
        state.params, state.model_state, batch, mine
    )
    updates, opt_state = optimizer.update(
        grads, state.opt_state, state.params
    )
    params = optax.apply_updates(state.params, updates)
    return TrainState(params, model_state, opt_state), loss

  return step


def _flat_step(workload, optimizer, key, workers):
  """One step of all workers, which hold the same parameters.

  The mean over workers is taken before the gradient, so that their batches
  become one; batch statistics stay those of each worker.
  """

  def mean_loss(params, model_state, batch, keys):
    losses, model_state = jax.vmap(workload.loss, (None, 0, 0, 0))(
        params, model_state, batch, keys
    )
    return jnp.mean(losses), (losses, model_state)

  # Mapped without a batched argument, it is computed once for all.
  update = jax.vmap(
      optimizer.update,
      in_axes=None,
      out_axes=None,
      axis_name=decopt.WORKERS,
      axis_size=workers,
  )

  def step(state, data, indices, number):
    batch = jax.vmap(_gather, (None, 0))(data, indices)
    keys = jax.vmap(functools.partial(_key, key, number))(jnp.arange(workers))
    grads, (losses, model_state) = jax.grad(mean_loss, has_aux=True)(
        state.params, state.model_state, batch, keys
    )
    updates, opt_state = update(grads, state.opt_state, state.params)
    params = optax.apply_updates(state.params, updates)
    return TrainState(params, model_state, opt_state), losses

  return step


def _gather(data, indices):
  return {
      name: x.at[indices].get(mode='promise_in_bounds')
      for name, x in data.items()
  }


def _key(key, number, worker):
  return jax.random.fold_in(jax.random.fold_in(key, number), worker)


def _scan(step, state, data, indices, first_step):
  """Runs a step for each of the batches on the leading axis of ``indices``."""

  def body(state, this):
    indices, number = this
    return step(state, data, indices, number)

  numbers = first_step + jnp.arange(indices.shape[0])
  return lax.scan(body, state, (indices, numbers))


def _vmapped(step, workers, mesh) -> Program:
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


def _unrolled(step, workers) -> Program:
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

    run = unrolled.per_worker(fn, axis_name=decopt.WORKERS, workers=workers)
    per_worker = [unrolled.PerWorker(x) for x in apart.stacked]
    per_worker.append(unrolled.PerWorker(indices[i] for i in range(workers)))
    shared, results = run([*apart.shared, *data_leaves, number], per_worker)
    *leaves, losses = [unrolled.spread(x, workers) for x in results]
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


def _flat(step, workers) -> Program:
  def enter(state):
    params, opt_state = decopt.worker((state.params, state.opt_state), 0)
    return jax.tree.map(
        jnp.copy, TrainState(params, state.model_state, opt_state)
    )

  @functools.partial(jax.jit, donate_argnums=0)
  def run(state, data, indices, first_step):
    state, losses = _scan(
        step, state, data, indices.swapaxes(0, 1), first_step
    )
    return state, losses.T

  def leave(state):
    params, opt_state = decopt.replicate(
        (state.params, state.opt_state), workers
    )
    return TrainState(params, state.model_state, opt_state)

  return Program('flat', enter, run, leave)
