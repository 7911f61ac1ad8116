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
from decopt import device_order
from decopt import hosts
from decopt import stacking


def make_mesh(
  devices: int | Sequence[jax.Device] | None = None,
  *,
  machines: int | None = None,
  torus: tuple[int, int] | None = None,
  axis_name: base.AxisName = base.WORKERS,
) -> Mesh:
  """Makes the mesh on which workers are spread, in the order of its devices.

  Where jax knows how devices are wired (TPUs), consecutive ones are linked,
  and so are the last and the first where the wiring allows: neighbours in a
  ring send over one link. Other devices are in the order of hosts.

  Args:
    devices: how many devices, as many of each process where that divides; or
      which, in an order of one's own. Default all that jax sees.
    machines: number of machines. The mesh then has two axes, machines and
      devices of a machine; devices of one process stay together, and workers
      are numbered machine by machine. It is what `hierarchical_gossip` talks
      about. Every algorithm runs on it, with the numbers of the other layouts.
    torus: (rows, columns) of devices. Neighbours in this torus are put on
      linked devices where the sides fit the wiring. For workers on a torus
      whose rows are `columns * k` long, with k of them on each device.
    axis_name: the name of the axis of the workers.

  Raises:
    ValueError: when there are fewer devices, when they do not divide into
      machines or into the torus, or when devices in an order of one's own
      are to be ordered as a torus.

  Example:
    >>> decopt.make_mesh(8).size
    8
    >>> decopt.make_mesh(8, machines=2).devices.shape
    (2, 4)
  """
  if machines is not None and torus is not None:
    raise ValueError(
      'make_mesh got machines and torus, but a mesh has one order of its '
      'devices. Leave out torus: workers are numbered machine by machine.'
    )
  if devices is None or isinstance(devices, numbers.Integral):
    devices = _ordered(_available(devices), machines, torus)
  elif torus is not None:
    raise ValueError(
      f'make_mesh got torus={torus} and a list of devices, whose order it '
      'keeps. Give the number of devices, or leave out torus.'
    )
  if machines is None:
    return _mesh(list(devices), (axis_name,))
  if machines < 1 or len(devices) % machines:
    raise ValueError(
      f'make_mesh got machines={machines} for {len(devices)} devices, which do '
      'not divide into so many machines. Use a divisor of the number of '
      'devices, such as the number of hosts: machines=jax.process_count().'
    )
  grid = np.reshape(devices, (machines, -1))
  return _mesh(grid, axes.machine_pair(axis_name))


def _available(number: int | None) -> list[jax.Device]:
  """Some of the devices, as many of each process where that divides."""
  available = jax.devices()
  if number is None:
    return available
  if not 0 < number <= len(available):
    raise ValueError(
      f'make_mesh got devices={number}, but jax sees {len(available)} '
      f'{available[0].platform} device(s). Use at most so many (several '
      'workers can share a device), or, on CPU, call jax.config.update('
      f"'jax_num_cpu_devices', {number}) before anything else of jax."
    )
  by_process = device_order.by_process(available)
  each, rest = divmod(number, len(by_process))
  if rest or any(len(mine) < each for mine in by_process):
    return available[:number]
  return [device for mine in by_process for device in mine[:each]]


def _ordered(devices, machines, torus) -> list[jax.Device]:
  if machines is not None:
    return device_order.machine_order(devices)
  if torus is None:
    return device_order.ring_order(devices)
  rows, columns = torus
  if rows * columns != len(devices):
    raise ValueError(
      f'make_mesh got torus={torus} for {len(devices)} devices; it needs rows '
      '* columns devices. With k workers on each device the torus of devices '
      'has rows of columns / k.'
    )
  return device_order.torus_order(devices, rows, columns)


def _mesh(devices, names) -> Mesh:
  # Explicit axes, the default of jax.make_mesh, reject unsharded arguments.
  types = (AxisType.Auto,) * len(names)
  return Mesh(np.asarray(devices), names, axis_types=types)


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
  spread = execution_mesh(mesh, workers, axes.of_mesh(mesh.axis_names))
  everywhere = NamedSharding(spread, PartitionSpec())
  by_worker = NamedSharding(spread, PartitionSpec(spread.axis_names))
  return stacking.map_stacked(
    lambda x: hosts.put(x, by_worker),
    stacked_tree,
    shared=lambda x: hosts.put(x, everywhere),
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
  """The devices of ``mesh``, their axes named as programs of workers see them.

  Arguments placed on this mesh have the placement of results, so that the
  second call of a function finds it compiled. With several workers on a device
  machines are forgotten: it has one axis, machine by machine.
  """
  local, rest = divmod(workers, mesh.size)
  if rest or not local:
    raise ValueError(
      f'{workers} workers do not spread evenly over the {mesh.size} devices '
      'of the mesh. Use a multiple, or make_mesh with a divisor of '
      f'{workers}.'
    )
  if local == 1 and mesh.devices.ndim == 2:
    return _mesh(mesh.devices, axes.machine_pair(axis_name))
  name = axis_name if local == 1 else axes.device_axis(axis_name)
  return _mesh(mesh.devices.reshape(-1), (name,))
