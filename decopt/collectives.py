"""Every `jax.lax` collective of the library, from one worker's chair.

Two things are said to other workers: `mean` and `mix`, the weighted sum over
neighbours. Each is written for the two ways in which the axis of the workers
may be bound (`decopt.axes`): one axis, or devices times the workers on one.
Tuples of axes do not work here: `jax.lax.ppermute` and `jax.lax.all_gather`
reject an axis of `jax.shard_map` together with one of `jax.vmap`.
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
from decopt import bucketing
from decopt import halo
from decopt import topology as topology_lib

# In simulation a weighted sum over neighbours reads one row for each of them,
# and a product with the whole matrix all rows, at the speed of matmul.
# Measured on CPU: equal at 16 workers with 2 neighbours.
_DENSE_FACTOR = 4
# With every worker's buffers apart they must first be put into one array, and
# the sum over neighbours is faster on all but nearly complete graphs (0.5
# against 1.0 ms for a ring of 8, 2.9 against 39 ms for 32 and 5 neighbours).
_DENSE_FACTOR_APART = 2


def worker_count(axis_name: base.AxisName = base.WORKERS) -> int:
  """Returns the number of workers."""
  return axes.bound_axis(axis_name).workers


def worker_index(axis_name: base.AxisName = base.WORKERS) -> jax.Array:
  """Returns the index of this worker, an int32 scalar."""
  axis = axes.bound_axis(axis_name)
  index = lax.axis_index(axis.device_name)
  if axis.local:
    index = index * axis.local + lax.axis_index(axis.local_name)
  return index


def mean(tree, *, axis_name: base.AxisName = base.WORKERS):
  r"""Gives every worker :math:`\frac1n \sum_j x_j`.

  Sums are taken in the dtype of a leaf, which is what crosses the wire.

  Args:
    tree: arrays of floating point, the same structure on all workers.
    axis_name: the axis of the workers.

  Raises:
    TypeError: for a leaf that is not of floating point.
  """
  axis = axes.bound_axis(axis_name)

  def send(x):
    total = lax.psum(x, axis.local_name) if axis.local else x
    return [lax.psum(total, axis.device_name)]

  def combine(own, received):
    del own
    return received[0] / axis.workers

  return _on_leaves(_Exchange(send, combine), tree, 'mean')


def mix(
  tree,
  topology: topology_lib.Topology,
  *,
  step=0,
  axis_name: base.AxisName = base.WORKERS,
):
  r"""Gives worker :math:`i` the sum :math:`\sum_j W^{(t)}_{ij} x_j`.

  Products and sums are taken in float32 at least, and rounded once to the
  dtype of the leaf; a message has the dtype of the leaf.

  Args:
    tree: arrays of floating point, the same structure on all workers.
    topology: :math:`W`; only the entries that are not zero cost a message.
    step: the round is ``step % topology.period``. An int32 scalar that is the
      same on all workers; from a `decopt.Clock` if it is traced.
    axis_name: the axis of the workers.

  Raises:
    ValueError: when the topology has another number of workers than the axis.
    TypeError: for a leaf that is not of floating point.
  """
  axis = axes.bound_axis(axis_name)
  if topology.workers != axis.workers:
    raise ValueError(
      f'topology {topology.name!r} has {topology.workers} workers but the '
      f'axis {axis_name!r} has {axis.workers}; build it with '
      f'workers={axis.workers}.'
    )
  rounds = [
    functools.partial(_mix_round, topology=topology, t=t, axis=axis)
    for t in range(topology.period)
  ]
  if topology.period == 1:
    return rounds[0](tree)
  return lax.switch(step % topology.period, rounds, tree)


class _Exchange(NamedTuple):
  """What a worker sends, and what it makes of what it receives.

  Attributes:
    send: maps an array to a list of arrays of its shape and dtype.
    combine: maps an array and what was received for it to the result.
  """

  send: Callable[[jax.Array], list[jax.Array]]
  combine: Callable[[jax.Array, Sequence[jax.Array]], jax.Array]


def _mix_round(tree, *, topology, t, axis):
  if axis.local:
    exchange = _packed(topology, t, axis)
  elif axes.is_simulation() and _is_dense(topology, t):
    exchange = _dense(topology, t, axis)
  else:
    exchange = _neighbours(topology, t, axis)
  return _on_leaves(exchange, tree, 'mix')


def _is_dense(topology, t) -> bool:
  neighbours = len(topology.permutations(t))
  factor = _DENSE_FACTOR_APART if axes.is_unrolled() else _DENSE_FACTOR
  return factor * (neighbours + 1) > topology.workers > 2


def _neighbours(topology, t, axis) -> _Exchange:
  """One permutation of the workers for each neighbour.

  `jax.vmap` accepts full permutations only, so that workers without a partner
  send to themselves, or to somebody who gives them weight zero. On a mesh they
  send nothing.
  """
  index = lax.axis_index(axis.name)

  rounds = topology.permutations(t)

  @functools.cache
  def coefficients(dtype):
    columns = [topology.self_weights(t), *(weights for _, weights in rounds)]
    return [_per_worker(column, index, dtype) for column in columns]

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

  def combine(own, received):
    dtype = base.wide(own.dtype)
    weight, *weights = coefficients(dtype)
    total = weight * own.astype(dtype)
    for weight, x in zip(weights, received, strict=True):
      total += weight * x.astype(dtype)
    return total.astype(own.dtype)

  return _Exchange(send, combine)


def _dense(topology, t, axis) -> _Exchange:
  """One product with the matrix; on one device, where gathering is free."""
  index = lax.axis_index(axis.name)

  @functools.cache
  def row(dtype):
    return jnp.asarray(topology.weights[t], dtype)[index]

  def send(x):
    dtype = base.wide(x.dtype)
    everyone = lax.all_gather(x, axis.name).astype(dtype)
    return [_product(row(dtype), everyone, x.dtype)]

  return _Exchange(send, _take_received)


def _packed(topology, t, axis) -> _Exchange:
  """Rows that other devices need cross; the sum is taken at home."""
  plan = halo.plan(topology, t, axis.local)
  device = lax.axis_index(axis.device_name)
  row = lax.axis_index(axis.local_name)
  terms, rows = plan.sources.shape[-1], plan.dense.shape[-1]
  dense = _DENSE_FACTOR * terms > rows

  @functools.cache
  def mine(name, dtype):
    return _on_device(getattr(plan, name), device).astype(dtype)[row]

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
    if dense:
      return [_product(mine('dense', dtype), held, x.dtype)]
    sources, weights = mine('sources', jnp.int32), mine('weights', dtype)
    total = sum(
      weights[k] * jnp.take(held, sources[k], axis=0) for k in range(terms)
    )
    return [total.astype(x.dtype)]

  return _Exchange(send, _take_received)


def _take_received(own, received):
  del own  # its share is in the sum
  return received[0]


def _product(weights, rows, dtype) -> jax.Array:
  product = jnp.tensordot(weights, rows, 1, precision=lax.Precision.HIGHEST)
  return product.astype(dtype)


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


def _on_leaves(exchange, tree, what):
  """Exchanges the leaves of a tree, in buckets on a mesh."""
  leaves, treedef = jax.tree.flatten(tree)
  for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
    if not jnp.issubdtype(jnp.result_type(leaf), jnp.inexact):
      raise TypeError(
        f'{what} averages floating-point arrays, but leaf '
        f'{jax.tree_util.keystr(path)!r} is of {jnp.result_type(leaf)}. '
        'Leave it out with optax.masked, or convert it.'
      )
  leaves = [jnp.asarray(leaf) for leaf in leaves]
  if axes.is_simulation():
    # With the barrier, for jax 0.12 computes an array anew for each neighbour
    # that reads it: 13 to 25 % of the step of an MLP.
    leaves = [lax.optimization_barrier(leaf) for leaf in leaves]
    results = [exchange.combine(x, exchange.send(x)) for x in leaves]
  else:
    results = bucketing.in_buckets(exchange.send, exchange.combine, leaves)
  return jax.tree.unflatten(treedef, results)
