"""What a run measures: held-out loss and accuracy, consensus, finiteness.

Everything is compiled once, runs in the layout of the training program, and
takes the state in the form in which that program keeps it. The held-out
examples are taken in parts, so that the memory needed does not grow with the
number of workers.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

import decopt
from decopt import hosts
from experiments import layouts

#: Held-out examples that all workers of a device evaluate at a time.
EXAMPLES_AT_A_TIME = 512


class Measures:
  """What a run measures between its steps, as numbers of Python.

  Args:
    experiment: see `experiments.setup`.
  """

  def __init__(self, experiment: Any):
    workers, mesh = experiment.workers, experiment.layout.mesh
    leave = experiment.program.leave
    evaluate = make_evaluate(
      experiment.workload,
      workers=workers,
      mesh=mesh,
      batch_statistics=experiment.fields['batch_statistics'],
    )
    distance = decopt.spmd(
      decopt.consensus_distance, workers=workers, mesh=mesh
    )

    @jax.jit
    def health(state):
      state = leave(state)
      return distance(state.params)[0], finite(state)

    self._health = health
    self._evaluate = jax.jit(lambda state, data: evaluate(leave(state), data))
    self._examples = layouts.share(experiment.workload.test, mesh)

  def health(self, state) -> tuple[float, list[int]]:
    """Returns the consensus distance, and which workers are not finite."""
    distance, flags = hosts.fetch(self._health(state))
    return float(distance), np.flatnonzero(~flags).tolist()

  def held_out(self, state) -> dict[str, float]:
    """Returns the metrics of held-out examples."""
    metrics = hosts.fetch(self._evaluate(state, self._examples))
    return {name: float(value) for name, value in metrics.items()}


def make_evaluate(
  workload: Any, *, workers: int, mesh: Mesh | None, batch_statistics: str
) -> Callable:
  """Returns a function of (state, held-out examples) to a dict of scalars.

  The averaged model has the mean over workers of the parameters. Its batch
  statistics, if the model has any, are the workers' mean (``'averaged'``), or
  each worker's own in turn (``'local'``: the mean of the results is reported).
  Workers are always evaluated with their own.

  Args:
    workload: whose ``evaluate`` gives loss and accuracy of one model.
    workers: number of workers.
    mesh: of the run; None in a simulation.
    batch_statistics: ``'local'`` or ``'averaged'``.
  """
  local = workers // (mesh.size if mesh else 1)
  most = max(1, EXAMPLES_AT_A_TIME // local)
  examples = len(jax.tree.leaves(workload.test)[0])
  # A part that leaves no rest spares the program for the rest.
  even = layouts.divisor(examples, most)
  part = even if 2 * even >= most else most

  def one_worker(params, model_state, average, examples):
    own = in_parts(workload.evaluate, params, model_state, examples, part)
    if average is None:
      return own, own
    mixed = in_parts(workload.evaluate, average, model_state, examples, part)
    return own, mixed

  each = decopt.spmd(
    one_worker, workers=workers, mesh=mesh, shared_argnums=(2, 3)
  )

  def evaluate(state, examples):
    params = decopt.average(state.params)
    own_statistics = bool(state.model_state) and batch_statistics == 'local'
    shared = params if own_statistics else None
    own, mixed = each(state.params, state.model_state, shared, examples)
    if own_statistics:
      averaged = jax.tree.map(jnp.mean, mixed)
    else:
      model_state = decopt.average(state.model_state)
      averaged = in_parts(
        workload.evaluate, params, model_state, examples, part
      )
    return {
      'loss_averaged': averaged['loss'],
      'accuracy_averaged': averaged['accuracy'],
      'loss_mean': jnp.mean(own['loss']),
      'accuracy_mean': jnp.mean(own['accuracy']),
      'loss_worst': jnp.max(own['loss']),
      'accuracy_worst': jnp.min(own['accuracy']),
    }

  return evaluate


def in_parts(evaluate: Callable, params, model_state, examples, part: int):
  """Evaluates ``part`` examples at a time and returns the mean over all."""
  total = jax.tree.leaves(examples)[0].shape[0]
  whole, rest = divmod(total, part)
  results = []
  if whole:
    stacked = jax.tree.map(
      lambda x: x[: whole * part].reshape(whole, part, *x.shape[1:]), examples
    )
    means = jax.lax.map(
      lambda batch: evaluate(params, model_state, batch), stacked
    )
    results.append((whole * part, jax.tree.map(jnp.mean, means)))
  if rest:
    last = jax.tree.map(lambda x: x[whole * part :], examples)
    results.append((rest, evaluate(params, model_state, last)))
  return jax.tree.map(
    lambda *values: sum(
      size / total * value
      for (size, _), value in zip(results, values, strict=True)
    ),
    *(values for _, values in results),
  )


def finite(state) -> jax.Array:
  """Says for each worker whether parameters and statistics are finite."""
  leaves = jax.tree.leaves((state.params, state.model_state))
  flags = [
    jnp.all(jnp.isfinite(leaf), axis=tuple(range(1, leaf.ndim)))
    for leaf in leaves
    if jnp.issubdtype(leaf.dtype, jnp.inexact)
  ]
  return jnp.all(jnp.stack(flags), axis=0)
