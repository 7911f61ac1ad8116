"""How a weighted sum over neighbours is exchanged, in each layout.

`decopt.collectives.mix` chooses one. `neighbours` sends along one permutation
of the workers for each neighbour. `packed` ships rows between devices that hold
several workers. Those for one device are in `decopt.one_device`.
"""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from decopt import axes
from decopt import base
from decopt import halo
from decopt import topology as topology_lib

#: On one device a weighted sum over neighbours reads one row for each of them,
#: and a product with the whole matrix all rows, at the speed of matmul.
#: Measured on CPU: equal at 16 workers with 2 neighbours.
DENSE_FACTOR = 4


class Exchange(NamedTuple):
  """What a worker sends, and what it makes of what it receives.

  Attributes:
    send: maps an array to a list of arrays of its shape and dtype.
    combine: maps an array and what was received for it to the result.
  """

  send: Callable[[jax.Array], list[jax.Array]]
  combine: Callable[[jax.Array, Sequence[jax.Array]], jax.Array]


class Sum(NamedTuple):
  """The weighted sum that a worker takes in one round.

  Attributes:
    topology: whose links carry it.
    t: the round of its period; for `decopt.one_device` it may be traced.
    weights: numbers [workers, workers] in the place of the topology's, the
      same on all workers; None for the topology's. Where there is no link they
      are taken for zero.
    own: whether what a worker holds itself is in the sum.
  """

  topology: topology_lib.Topology
  t: int | jax.Array
  weights: jax.Array | None = None
  own: bool = True

  @property
  def plain(self) -> bool:
    """Whether it is what the topology says."""
    return self.weights is None and self.own

  def read(self, worker, origins, reads, dtype) -> jax.Array:
    """The given weights that a worker puts on others.

    Args:
      worker: which worker.
      origins: int array [terms], the others.
      reads: bool array [terms], which of the terms there are.
      dtype: of the numbers.
    """
    numbers = self.weights[worker, origins].astype(dtype)
    return jnp.where(reads, numbers, 0)


def neighbours(total: Sum, axis: axes.Axis) -> Exchange:
  """One permutation of the workers for each neighbour.

  `jax.vmap` accepts full permutations only, so that workers without a partner
  send to themselves, or to somebody who gives them weight zero. On a mesh they
  send nothing.
  """
  index = lax.axis_index(axis.name)

  rounds = total.topology.permutations(total.t)

  @functools.cache
  def coefficients(dtype):
    if total.weights is None:
      own = total.topology.self_weights(total.t)
      columns = [own, *(weights for _, weights in rounds)]
      return [_per_worker(column, index, dtype) for column in columns]
    origins, reads = _heard(rounds, axis.workers)
    return list(total.read(index, origins[index], reads[index], dtype))

  permutations = [
    [
      (int(j), i)
      for i, j in enumerate(sources)
      if weights[i] or not axes.is_mesh()
    ]
    for sources, weights in rounds
  ]

  def send(x):
    return [lax.ppermute(x, axis.name, pairs) for pairs in permutations]

  return Exchange(send, weighted(coefficients, total.own))


def packed(total: Sum, axis: axes.Axis) -> Exchange:
  """Rows that other devices need cross; the sum is taken at home."""
  own = None if total.plain else total.own
  plan = halo.plan(total.topology, total.t, axis.local, own)
  device = lax.axis_index(axis.device_name)
  row = lax.axis_index(axis.local_name)
  terms, rows = plan.sources.shape[-1], plan.dense.shape[-1]
  dense_sum = not terms or DENSE_FACTOR * terms > rows

  @functools.cache
  def mine(name, dtype):
    return _on_device(getattr(plan, name), device).astype(dtype)[row]

  @functools.cache
  def coefficients(dtype):
    if total.weights is None:
      return mine('dense' if dense_sum else 'weights', dtype)
    held = np.arange(rows) if dense_sum else mine('sources', jnp.int32)
    origins = _on_device(plan.origins, device)[held]
    reads = mine('reads', bool)[held]
    return total.read(device * axis.local + row, origins, reads, dtype)

  def send(x):
    held = lax.all_gather(x, axis.local_name)
    received = [
      lax.ppermute(
        _rows(held, shipment.rows, device), axis.device_name, shipment.pairs
      )
      for shipment in plan.shipments
    ]
    dtype = base.wide(x.dtype)
    held = jnp.concatenate([held, *received]).astype(dtype)
    if dense_sum:
      return [product(coefficients(dtype), held, x.dtype)]
    sources, weights = mine('sources', jnp.int32), coefficients(dtype)
    result = sum(
      weights[k] * jnp.take(held, sources[k], axis=0) for k in range(terms)
    )
    return [result.astype(x.dtype)]

  return Exchange(send, take_received)


def weighted(
  coefficients: Callable[[jnp.dtype], Sequence[jax.Array]], own_too: bool
) -> Callable:
  """Returns the `Exchange.combine` that sums up, in float32 at least.

  Args:
    coefficients: for a dtype, the weight of what a worker holds and those of
      what it received.
    own_too: whether what it holds is in the sum.
  """

  def combine(own, received):
    dtype = base.wide(own.dtype)
    weights = coefficients(dtype)
    terms = [own, *received] if own_too else received
    if not terms:
      return jnp.zeros_like(own)
    weights = weights[len(weights) - len(terms) :]
    result = weights[0] * terms[0].astype(dtype)
    for weight, x in zip(weights[1:], terms[1:], strict=True):
      result += weight * x.astype(dtype)
    return result.astype(own.dtype)

  return combine


def take_received(own, received):
  """The `Exchange.combine` of a sum that was taken before it was sent."""
  del own  # its share is in the sum
  return received[0]


def product(weights, rows, dtype) -> jax.Array:
  """Sums rows with these weights."""
  result = jnp.tensordot(weights, rows, 1, precision=lax.Precision.HIGHEST)
  return result.astype(dtype)


def packed_rounds(totals: Sequence[Sum], t, axis: axes.Axis) -> Exchange:
  """`packed` for round ``t`` of several.

  Only what crosses devices, and the sum, depend on the round. What gathers
  leaves and cuts them apart does not, and is not compiled for each round.
  """

  def of_round(x, *, total):
    return packed(total, axis).send(x)

  rounds = [functools.partial(of_round, total=total) for total in totals]

  def send(x):
    return lax.switch(t, rounds, x) if len(rounds) > 1 else rounds[0](x)

  return Exchange(send, take_received)


def _heard(rounds, workers) -> tuple[jax.Array, jax.Array]:
  """Whom workers hear in permutations: indices [workers, terms], if at all."""
  everyone = np.arange(workers), np.ones(workers, bool)
  terms = [everyone, *((sources, weights > 0) for sources, weights in rounds)]
  origins, reads = zip(*terms, strict=True)
  return jnp.stack(origins, axis=1), jnp.stack(reads, axis=1)


def _rows(held, rows: np.ndarray, device) -> jax.Array:
  """Returns the rows that this device sends; slices where all agree on them."""
  if (rows == rows[0]).all():
    return jnp.concatenate([held[row : row + 1] for row in rows[0].tolist()])
  return jnp.take(held, jnp.asarray(rows)[device], axis=0)


def _on_device(table: np.ndarray, device) -> jax.Array:
  """Returns this device's row of a table, a constant where all rows agree."""
  if (table == table[0]).all():
    return jnp.asarray(table[0])
  return jnp.asarray(table)[device]


def _per_worker(values: np.ndarray, index, dtype):
  """Returns this worker's entry, a constant where all workers agree."""
  if (values == values[0]).all():
    return np.asarray(values[0], dtype)
  return jnp.asarray(values, dtype)[index]
