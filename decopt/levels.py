"""Averages by level: within each machine, then between machines.

Workers are numbered machine by machine. All of a machine average, and the means
are mixed along a graph of the machines. Links inside a machine are fast and
links between machines slow, so what crosses between them is counted: if each
worker talked to a peer elsewhere, its machine would send the same mean as often
as it has workers. Here each worker sends its share of it: the mean is reduced
to shares, one a worker (reduce-scatter), each share is mixed with those of the
peers in other machines, and then the workers of a machine exchange shares
(all-gather).
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from decopt import axes
from decopt import base
from decopt import bucketing
from decopt import collectives
from decopt import topology as topology_lib


def mix_machines(
  tree,
  topology: topology_lib.Topology,
  workers_per_machine: int,
  *,
  step=0,
  axis_name: base.AxisName = base.WORKERS,
):
  r"""Gives all workers of machine m the sum over m' of B_mm' mean_m'(x).

  How depends on where the workers are:

  | workers | within a machine | between machines |
  |---|---|---|
  | simulated | one mean for all | the means are mixed |
  | one a device | reduce-scatter, all-gather | each sends its share |
  | packed, k devices a machine | a sum first, then the same | the same |
  | packed, k machines a device | one mean for all | one message for all |
  | anything else | a message to each colleague | each sends the mean |

  The last row is for devices that are shared by parts of machines, and for a
  `jax.vmap`, `jax.pmap` or `jax.shard_map` of the caller's own.

  Args:
    tree: arrays of floating point, the same structure on all workers.
    topology: the weights B, with one "worker" for each machine.
    workers_per_machine: how many consecutive workers make a machine.
    step: the round is ``step % topology.period``, as in `decopt.mix`.
    axis_name: the axis of the workers.

  Raises:
    ValueError: when the workers of the axis do not divide into machines, or
      the topology has another number of machines.
    TypeError: for a leaf that is not of floating point.
  """
  axis = axes.bound_axis(axis_name)
  _check(topology, workers_per_machine, axis)
  collectives.require_floating(tree, 'hierarchical_gossip')
  tree = jax.tree.map(jnp.asarray, tree)
  rounds = [
    functools.partial(
      _exchange(axis, workers_per_machine),
      topology=_between(topology, t, 1),
      axis=axis,
      size=workers_per_machine,
    )
    for t in range(topology.period)
  ]
  if topology.period == 1:
    return rounds[0](tree)
  return lax.switch(step % topology.period, rounds, tree)


def _exchange(axis, size):
  """How machines of ``size`` workers talk, given where the workers are."""
  local = axis.local or 1
  if axes.is_simulation():
    return _side_by_side
  if not axes.is_mesh():
    return _one_by_one
  if size % local == 0:
    return _by_shares
  return _side_by_side if local % size == 0 else _one_by_one


def _by_shares(tree, *, topology, axis, size):
  """A machine is one device or more, and each sends its share of the mean."""
  devices = size // (axis.local or 1)
  if axis.inner == devices:
    machines, inside, groups = *axis.name, None
  else:
    topology = _between(topology, 0, devices)
    machines = inside = axis.name
    groups = np.arange(axis.devices).reshape(-1, devices).tolist()

  def send(x):
    total = lax.psum(x, axis.local_name) if axis.local else x
    share = jnp.pad(total.ravel(), (0, -x.size % devices))
    if devices > 1:
      share = lax.psum_scatter(
        share, inside, axis_index_groups=groups, tiled=True
      )
    share = collectives.mix(share / size, topology, axis_name=machines)
    if devices > 1:
      share = lax.all_gather(
        share, inside, axis_index_groups=groups, tiled=True
      )
    return [share[: x.size].reshape(x.shape)]

  def combine(own, received):
    del own  # its share is in the mean
    return received[0]

  leaves, treedef = jax.tree.flatten(tree)
  return treedef.unflatten(bucketing.in_buckets(send, combine, leaves))


def _side_by_side(tree, *, topology, axis, size):
  """Whole machines share a device, which mixes their means for all workers.

  The means are workers of a smaller axis: of a simulation, or of a packed mesh
  with as many on each device as there are machines.
  """
  name = axes.machine_axis(axis.name)
  if axis.local:
    together, here = axis.local_name, axis.local // size
    machines = axes.Axis(axis.name, axis.devices, here, name)
  else:
    together, here = axis.name, axis.devices // size
    machines = name

  def mean(x):
    everyone = lax.all_gather(x, together).reshape(here, size, *x.shape)
    return jnp.mean(everyone, 1, base.wide(x.dtype)).astype(x.dtype)

  mixed = jax.vmap(
    functools.partial(collectives.mix, topology=topology, axis_name=machines),
    axis_name=name,
    axis_size=here,
  )(jax.tree.map(mean, tree))
  mine = lax.div(lax.axis_index(together), np.int32(size))
  return jax.tree.map(lambda x: x[mine], mixed)


def _one_by_one(tree, *, topology, axis, size):
  """Every worker talks to each colleague, then to each of its peers."""
  within, between = _within(topology.workers, size), _between(topology, 0, size)
  mean = collectives.mix(tree, within, axis_name=axis)
  return collectives.mix(mean, between, axis_name=axis)


@functools.lru_cache(maxsize=512)
def _between(topology, t: int, copies: int) -> topology_lib.Topology:
  """Round ``t`` on ``copies`` disjoint copies of the graph, side by side."""
  weights = np.kron(topology.weights[t], np.eye(copies))
  return topology_lib.Topology(weights, topology.name)


@functools.lru_cache(maxsize=64)
def _within(machines: int, size: int) -> topology_lib.Topology:
  weights = np.kron(np.eye(machines), np.full((size, size), 1 / size))
  return topology_lib.Topology(weights, 'within machines')


def _check(topology, size, axis) -> None:
  machines, rest = divmod(axis.workers, size)
  if rest:
    raise ValueError(
      f'hierarchical_gossip got workers_per_machine={size}, but there are '
      f'{axis.workers} workers, which do not divide into machines of {size}. '
      f'Use a divisor of {axis.workers}.'
    )
  if topology.workers != machines:
    raise ValueError(
      f'hierarchical_gossip got topology {topology.name!r} of '
      f'{topology.workers} machines, but {axis.workers} workers are '
      f'{machines} machines of {size}. The topology is one of machines, not of '
      f'workers: build it with workers={machines}.'
    )
