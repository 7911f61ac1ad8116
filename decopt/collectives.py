"""What workers say to each other, from one worker's chair.

Two things are said: `mean` and `mix`, the weighted sum over neighbours. The
`jax.lax` collectives of the library are here, in `decopt.exchanges` and
`decopt.one_device`, which write that sum, and in `decopt.levels`, for all ways
in which the axis of the workers may be bound (`decopt.axes`), such as devices
times the workers on one. Tuples of axes do not work here: `jax.lax.ppermute`
and `jax.lax.all_gather` reject an axis of `jax.shard_map` together with one of
`jax.vmap`.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from decopt import axes
from decopt import base
from decopt import bucketing
from decopt import exchanges
from decopt import one_device
from decopt import topology as topology_lib


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

  return _on_leaves(exchanges.Exchange(send, combine), tree, 'mean')


def mix(
  tree,
  topology: topology_lib.Topology,
  *,
  step=0,
  weights: jax.Array | None = None,
  own: bool = True,
  axis_name: base.AxisName = base.WORKERS,
):
  r"""Gives worker :math:`i` the sum :math:`\sum_j W^{(t)}_{ij} x_j`.

  Products and sums are taken in float32 at least, and rounded once to the
  dtype of the leaf; a message has the dtype of the leaf. Other ``weights``
  change what is made of messages and not who sends them.

  Args:
    tree: arrays of floating point, the same structure on all workers.
    topology: :math:`W`; only the entries that are not zero cost a message.
    step: the round is ``step % topology.period``. An int32 scalar that is the
      same on all workers; from a `decopt.Clock` if it is traced.
    weights: numbers ``[workers, workers]`` in the place of this round's, the
      same on all workers. They may differ on the links of the round and on the
      diagonal; elsewhere they are taken for zero.
    own: whether the sum includes :math:`j = i`.
    axis_name: the axis of the workers.

  Raises:
    ValueError: when the topology has another number of workers than the axis,
      or the weights another shape.
    TypeError: for a leaf that is not of floating point.
  """
  axis = axes.bound_axis(axis_name)
  if topology.workers != axis.workers:
    raise ValueError(
      f'topology {topology.name!r} has {topology.workers} workers but the '
      f'axis {axis_name!r} has {axis.workers}; build it with '
      f'workers={axis.workers}.'
    )
  shape = (axis.workers, axis.workers)
  if weights is not None and jnp.shape(weights) != shape:
    raise ValueError(
      f'mix got weights of shape {jnp.shape(weights)} for {axis.workers} '
      f'workers; it needs {shape}: what each receiver puts on each sender.'
    )
  weights = None if weights is None else jnp.asarray(weights)
  t = step % topology.period if topology.period > 1 else 0
  if axes.is_simulation() and (found := one_device.of_any_round(topology)):
    total = exchanges.Sum(topology, t, weights, own)
    return _on_leaves(found(total, axis), tree, 'mix')
  if axis.local:
    totals = [
      exchanges.Sum(topology, t, weights, own) for t in range(topology.period)
    ]
    return _on_leaves(exchanges.packed_rounds(totals, t, axis), tree, 'mix')
  rounds = [
    functools.partial(
      _mix_round, total=exchanges.Sum(topology, t, weights, own), axis=axis
    )
    for t in range(topology.period)
  ]
  return lax.switch(t, rounds, tree) if len(rounds) > 1 else rounds[0](tree)


def require_floating(tree, what: str) -> None:
  """Raises a `TypeError` that names the leaf that ``what`` cannot average."""
  for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
    if not jnp.issubdtype(jnp.result_type(leaf), jnp.inexact):
      raise TypeError(
        f'{what} averages floating-point arrays, but leaf '
        f'{jax.tree_util.keystr(path)!r} is of {jnp.result_type(leaf)}. '
        'Leave it out with optax.masked, or convert it.'
      )


def _mix_round(tree, *, total, axis):
  if axes.is_simulation() and one_device.is_dense(total.topology, total.t):
    exchange = one_device.dense(total, axis)
  else:
    exchange = exchanges.neighbours(total, axis)
  return _on_leaves(exchange, tree, 'mix')


def _on_leaves(exchange, tree, what):
  """Exchanges the leaves of a tree, in buckets on a mesh."""
  require_floating(tree, what)
  leaves, treedef = jax.tree.flatten(tree)
  leaves = [jnp.asarray(leaf) for leaf in leaves]
  if axes.is_simulation():
    results = _leaf_by_leaf(exchange, leaves)
  else:
    results = bucketing.in_buckets(exchange.send, exchange.combine, leaves)
  return jax.tree.unflatten(treedef, results)


def _leaf_by_leaf(exchange, leaves) -> list[jax.Array]:
  results = []
  turns = bucketing.Turns(results)
  for i, x in enumerate(leaves):
    # With the barrier, for jax 0.12 computes an array anew for each neighbour
    # that reads it: 13 to 25 % of the step of an MLP.
    (x,) = lax.optimization_barrier(turns.wait([i], [x]))
    results.append(exchange.combine(x, exchange.send(x)))
  return results
