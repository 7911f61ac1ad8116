"""Where workers run: a simulation on one device, or a mesh of several.

A mesh may span several processes; each then has equally many of its devices.

The only place that looks at devices. `prepare` comes before anything else of
jax, because the number of virtual CPU devices is fixed once a backend starts.
"""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

import jax
from jax.sharding import Mesh
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec

import decopt
from decopt import hosts
from experiments import errors

#: Virtual CPU devices of a mesh when the config does not say how many.
MOST_CPU_DEVICES = 8


@dataclasses.dataclass(frozen=True)
class Layout:
  """How the workers of a run are executed.

  Attributes:
    name: `simulation` or `mesh`.
    mesh: of the workers; None in a simulation.
    description: for people.
  """

  name: str
  mesh: Mesh | None
  description: str


def prepare(fields: Mapping[str, Any], processes: int = 1) -> None:
  """Asks jax for virtual CPU devices, if a mesh on CPU will need them.

  Args:
    fields: the resolved config.
    processes: how many share the mesh.
  """
  untouched = jax.config.jax_num_cpu_devices < 1
  forced = 'host_platform_device_count' in os.environ.get('XLA_FLAGS', '')
  mesh = fields['layout'] == 'mesh' or processes > 1
  if not mesh or forced or not untouched:
    return
  each = fields['devices'] // processes
  if not each:
    most = max(1, MOST_CPU_DEVICES // processes)
    each = _devices_each(fields['workers'], processes, most)
  jax.config.update('jax_num_cpu_devices', max(1, each))


def _devices_each(workers: int, processes: int, most: int) -> int:
  """Returns how many devices of each process a mesh of `workers` can have."""
  if workers % processes:
    raise errors.UserError(
      f'config.workers is {workers}; it must be a multiple of the {processes} '
      'processes'
    )
  return divisor(workers // processes, most)


def choose(
  fields: Mapping[str, Any], torus: tuple[int, int] | None = None
) -> Layout:
  """Returns the layout for a config, on the devices that jax sees.

  Args:
    fields: the resolved config.
    torus: rows and columns of the workers, if they average on a torus, so that
      neighbours get neighbouring devices where these are wired.

  Raises:
    UserError: for a mesh with more devices than there are, or whose devices do
      not divide the workers.
  """
  available, processes = jax.devices(), jax.process_count()
  workers, platform = fields['workers'], available[0].platform
  most = len(available) // processes
  devices = (
    fields['devices'] or _devices_each(workers, processes, most) * processes
  )
  name = fields['layout']
  if processes > 1:
    _check_processes(name, devices, processes)
    name = 'mesh'
  if name == 'auto':
    several = platform != 'cpu' and 1 < devices <= len(available)
    name = 'mesh' if several and workers % devices == 0 else 'simulation'
  if name == 'simulation':
    return Layout(name, None, f'simulation on one {platform} device')
  if devices > len(available):
    raise errors.UserError(
      f"layout 'mesh' with {devices} devices, but jax sees "
      f'{len(available)} {platform} device(s); use --config.devices='
      f'{divisor(workers, len(available))}, --config.layout=simulation, or '
      'virtual CPU devices with JAX_PLATFORMS=cpu'
    )
  if workers % devices:
    raise errors.UserError(
      f"layout 'mesh': {workers} workers do not divide over {devices} devices; "
      f'use --config.devices={divisor(workers, devices)} or a multiple of '
      f'{devices} workers'
    )
  return Layout(
    name,
    _mesh(devices, workers, torus),
    f'mesh of {devices} {platform} device(s)'
    + (f' of {processes} processes' if processes > 1 else '')
    + f', {workers // devices} worker(s) on each',
  )


def _check_processes(name: str, devices: int, processes: int) -> None:
  if name == 'simulation':
    raise errors.UserError(
      f"layout 'simulation' is for one process, but there are {processes}; use "
      '--config.layout=mesh'
    )
  if devices % processes:
    raise errors.UserError(
      f'config.devices is {devices}; it must be a multiple of the {processes} '
      'processes'
    )


def _mesh(devices: int, workers: int, torus) -> Mesh:
  """Returns a mesh; workers of a torus are on devices that form one, too."""
  local = workers // devices
  if torus is None or torus[1] % local:
    return decopt.make_mesh(devices)
  return decopt.make_mesh(devices, torus=(torus[0], torus[1] // local))


def share(tree, mesh):
  """Places what all workers read: on the device, or on each of a mesh."""
  if mesh is None:
    return jax.device_put(tree)
  everywhere = NamedSharding(mesh, PartitionSpec())
  return jax.tree.map(lambda x: hosts.put(x, everywhere), tree)


def divisor(number: int, most: int) -> int:
  """Returns the largest divisor of ``number`` that is at most ``most``.

  Example:
    >>> divisor(12, 8), divisor(11, 8)
    (6, 1)
  """
  return max(side for side in range(1, most + 1) if number % side == 0)
