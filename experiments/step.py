"""The training program: several steps of all workers in one dispatch.

A step of a worker is the usual one: batch, gradient, update. This file writes
it once, for one worker, and chooses among `experiments.mappings` how it is
executed for all.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax

import decopt
from decopt import axes
from decopt import jaxprs
from experiments import mappings
from experiments.mappings import MAPPINGS
from experiments.mappings import Program
from experiments.mappings import TrainState
from experiments.workloads.base import Workload

# An unrolled program is as long as that of one worker times the number of
# workers, and XLA's compile time goes with it.
_LONGEST_UNROLLED = 10_000
# It gains where products are large and loses where they are small, which
# `jax.vmap` makes one call of. In floating-point operations of one product.
_SMALLEST_PRODUCT = 2e6


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
  batch_size: int = 32,
  seed: int = 0,
) -> Program:
  """Builds the training program.

  Args:
    workload: batches and losses.
    optimizer: an optax transformation that gets gradients of one worker.
    workers: number of workers.
    mesh: from `decopt.make_mesh`; None for a simulation.
    mapping: the gradient mapping; ``'auto'`` as `choose_mapping` says.
    batch_size: examples of a worker in a step; only ``'auto'`` asks.
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
  if mesh is not None:
    _require_oblivious(optimizer, params, workers)
  if mapping == 'auto':
    mapping = choose_mapping(
      workload, optimizer, workers=workers, batch_size=batch_size, mesh=mesh
    )
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
    return mappings.flat(step, workers)
  if mapping == 'unrolled':
    return mappings.unrolled(step, workers)
  return mappings.vmapped(step, workers, mesh)


def _require_oblivious(optimizer, params, workers) -> None:
  found = decopt.data_dependent_collectives(optimizer, params, workers)
  if found:
    raise ValueError(
      f'layout: this algorithm would hang on a mesh: {"; ".join(found)}. '
      'Workers that skip an exchange leave the others waiting for it. Put what '
      'looks at data around the local optimizer only.'
    )


def one_worker(workload: Workload):
  """Returns shapes and dtypes of one worker's (params, model_state)."""
  return jax.eval_shape(workload.init, jax.random.key(0))


def choose_mapping(
  workload: Workload,
  optimizer,
  *,
  workers: int,
  batch_size: int = 32,
  mesh=None,
) -> str:
  """The rule behind ``gradient_mapping='auto'``.

  ``'flat'`` in a simulation of an algorithm that keeps all workers equal.
  ``'unrolled'`` in a simulation on CPU where it pays: the products in a
  worker's gradient have 2 million operations in the mean, and the program
  stays short enough to compile (equations of the gradient times workers are at
  most 10,000). ``'vmap'`` otherwise.
  """
  if mesh is not None:
    return 'vmap'
  params, model_state = one_worker(workload)
  if decopt.keeps_workers_equal(optimizer, params, workers):
    return 'flat'
  if jax.default_backend() != 'cpu':
    return 'vmap'
  batch = {
    name: jax.ShapeDtypeStruct((batch_size, *x.shape[1:]), x.dtype)
    for name, x in workload.train.items()
  }
  gradient = jax.make_jaxpr(jax.grad(workload.loss, has_aux=True))(
    params, model_state, batch, jax.random.key(0)
  )
  products = jaxprs.product_sizes(gradient)
  large = bool(products) and np.mean(products) >= _SMALLEST_PRODUCT
  short = workers * jaxprs.length(gradient) <= _LONGEST_UNROLLED
  return 'unrolled' if large and short else 'vmap'


def _worker_step(workload, optimizer, key):
  """One step of one worker."""

  def step(state, data, indices, number):
    batch = _gather(data, indices)
    mine = _key(key, number, decopt.worker_index())
    grad_fn = jax.value_and_grad(workload.loss, has_aux=True)
    (loss, model_state), grads = grad_fn(
      state.params, state.model_state, batch, mine
    )
    updates, opt_state = optimizer.update(grads, state.opt_state, state.params)
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
  mapped = jax.vmap(
    optimizer.update,
    in_axes=None,
    out_axes=None,
    axis_name=decopt.WORKERS,
    axis_size=workers,
  )

  def update(grads, state, params):
    with axes.executed_as('simulation'):
      return mapped(grads, state, params)

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
