"""Where stacked arrays lie: meshes, and copies for all workers."""

import functools
import numbers
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import Mesh
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec

from decopt import axes
from decopt import base
from decopt import stacking


def make_mesh(
  devices: int | Sequence[jax.Device] | None = None,
  *,
  axis_name: base.AxisName = base.WORKERS,
) -> Mesh:
  """Makes the one-dimensional mesh on which workers are spread.

  Args:
    devices: how many devices, or which; default all that jax sees.
    axis_name: the name of the axis.

  Raises:
    ValueError: when there are fewer devices.

  Example:
    >>> decopt.make_mesh(8).size
    8
  """
  available = jax.devices()
  if devices is None:
    devices = available
  elif isinstance(devices, numbers.Integral):
    if not 0 < devices <= len(available):
      raise ValueError(
        f'make_mesh got devices={devices}, but jax sees {len(available)} '
        f'{available[0].platform} device(s). Use at most so many (several '
        'workers can share a device), or, on CPU, call jax.config.update('
        f"'jax_num_cpu_devices', {devices}) before anything else of jax."
      )
    devices = available[:devices]
  # Explicit axes, the default of jax.make_mesh, reject unsharded arguments.
  return Mesh(np.asarray(devices), (axis_name,), axis_types=(AxisType.Auto,))


def replicate(tree, workers: int, *, mesh: Mesh | None = None):
  """Gives every worker a copy: adds a leading worker axis to each array.

  Args:
    tree: arrays of one worker; a `decopt.Clock` in it stays as it is.
    workers: number of copies.
    mesh: where to place the copies; default the default device.
  """
  if workers < 1:
    raise ValueError(f'replicate got workers={workers}; it needs at least 1.')

  stacked = _copies(tree, workers)
  return stacked if mesh is None else place(stacked, mesh)


@functools.partial(jax.jit, static_argnums=1)
def _copies(tree, workers):
  def copy(x):
    return jnp.broadcast_to(x, (workers, *jnp.shape(x)))

  return stacking.map_stacked(copy, tree)


def place(stacked_tree, mesh: Mesh):
  """Spreads stacked arrays over a mesh, each worker on its device.

  Args:
    stacked_tree: arrays with a leading worker axis, and clocks.
    mesh: from `make_mesh`.
  """
  stacked = stacking.split((stacked_tree,)).stacked
  # A tree of clocks, or of nothing, says no number; any mesh will do for it.
  workers = (
    stacking.worker_count((stacked_tree,), (), None) if stacked else mesh.size
  )
  spread = execution_mesh(mesh, workers, mesh.axis_names[0])
  everywhere = NamedSharding(spread, PartitionSpec())
  by_worker = NamedSharding(spread, PartitionSpec(spread.axis_names[0]))
  return stacking.map_stacked(
    lambda x: jax.device_put(x, by_worker),
    stacked_tree,
    clocks=lambda x: jax.device_put(x, everywhere),
  )


def worker(stacked_tree, index: int):
  """Returns the tree of one worker out of a stacked one.

  Args:
    stacked_tree: arrays with a leading worker axis, and clocks.
    index: which worker.
  """
  return stacking.map_stacked(lambda x: x[index], stacked_tree)


def average(stacked_tree):
  """Averages stacked arrays over workers.

  Args:
    stacked_tree: arrays with a leading worker axis, and clocks.
  """
  return stacking.map_stacked(lambda x: jnp.mean(x, axis=0), stacked_tree)


def execution_mesh(mesh, workers, axis_name) -> Mesh:
  """The devices of ``mesh``, their axis named as programs of workers see it.

  Arguments placed on this mesh have the placement of results, so that the
  second call of a function finds it compiled.
  """
  local, rest = divmod(workers, mesh.size)
  if rest or not local:
    raise ValueError(
      f'{workers} workers do not spread evenly over the {mesh.size} devices '
      'of the mesh. Use a multiple, or make_mesh with a divisor of '
      f'{workers}.'
    )
  name = axis_name if local == 1 else axes.device_axis(axis_name)
  return Mesh(mesh.devices.reshape(-1), (name,), axis_types=(AxisType.Auto,))
