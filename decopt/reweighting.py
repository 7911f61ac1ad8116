"""The weights of a round in which messages are lost.

All workers know what is lost (`decopt.faults`), so each of them calculates the
matrix of the round in the place of the topology's, by one of two rules.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from decopt import base
from decopt import faults as faults_lib
from decopt import topology as topology_lib


def kept_by_senders(weights: jax.Array, arrived: jax.Array) -> jax.Array:
  """The weight of a lost message stays with the worker that sent it.

  Column sums stay as they are, and with them the sum over workers. Where
  weights are symmetric and the two directions of a link fail together, lost
  weight returns to both ends, and row sums stay as they are too.

  Args:
    weights: `[workers, workers]`, receivers by senders.
    arrived: bool of this shape; what it says of the diagonal is ignored.
  """
  lost = jnp.where(_heard(arrived), 0, weights)
  return weights - lost + jnp.diag(lost.sum(axis=0))


def renormalized(weights: jax.Array, arrived: jax.Array) -> jax.Array:
  """What arrived is divided by the sum of its weights.

  Rows sum to 1. A worker that is left with nothing keeps what it had.

  Args:
    weights: `[workers, workers]`, receivers by senders.
    arrived: bool of this shape; what it says of the diagonal is ignored.
  """
  heard = jnp.where(_heard(arrived), weights, 0)
  total = heard.sum(axis=1, keepdims=True)
  nothing = total == 0
  alone = jnp.eye(len(weights), dtype=weights.dtype)
  return jnp.where(nothing, alone, heard / jnp.where(nothing, 1, total))


def start(faults: faults_lib.Faults | None, workers: int) -> base.Shared | None:
  """Returns the state of a fault model; None without one."""
  return None if faults is None else base.Shared(faults.init(workers))


def reweigh(
  faults: faults_lib.Faults | None,
  state: base.Shared | None,
  topology: topology_lib.Topology,
  step,
  *,
  rule: Callable[[jax.Array, jax.Array], jax.Array] = kept_by_senders,
  directed: bool,
) -> tuple[jax.Array | None, base.Shared | None]:
  """Returns the weights of a round in which messages are lost, and the state.

  Args:
    faults: a fault model; None loses nothing.
    state: of the fault model.
    topology: weights before the losses.
    step: the round, from a clock.
    rule: `kept_by_senders` or `renormalized`.
    directed: as for `Draw.arrivals`.

  Returns:
    ``(weights, state)``, for `decopt.mix`; ``(None, None)`` without faults.
  """
  if faults is None:
    return None, None
  draw, value = faults.draw(state.value, step, topology.workers)
  rounds = jnp.asarray(topology.weights, jnp.result_type(float))
  weights = rounds[0] if topology.period == 1 else rounds[step % len(rounds)]
  weights = rule(weights, draw.arrivals(directed=directed))
  return weights, base.Shared(value)


def _heard(arrived) -> jax.Array:
  return arrived | jnp.eye(len(arrived), dtype=bool)
