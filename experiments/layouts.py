"""Where workers run: a simulation on one device, or a mesh of several.

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


def prepare(fields: Mapping[str, Any]) -> None:
  """Asks jax for virtual CPU devices, if a mesh on CPU will need them."""
  untouched = jax.config.jax_num_cpu_devices < 1
  forced = 'host_platform_device_count' in os.environ.get('XLA_FLAGS', '')
  if fields['layout'] != 'mesh' or forced or not untouched:
    return
  devices = fields['devices'] or divisor(fields['workers'], MOST_CPU_DEVICES)
  jax.config.update('jax_num_cpu_devices', devices)


def choose(fields: Mapping[str, Any]) -> Layout:
  """Returns the layout for a config, on the devices that jax sees.

  Raises:
    UserError: for a mesh with more devices than there are, or whose devices do
      not divide the workers.
  """
  available = jax.devices()
  workers, platform = fields['workers'], available[0].platform
  devices = fields['devices'] or divisor(workers, len(available))
  name = fields['layout']
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
    decopt.make_mesh(devices),
    f'mesh of {devices} {platform} device(s), {workers // devices} worker(s) '
    'on each',
  )


def share(tree, mesh):
  """Places what all workers read: on the device, or on each of a mesh."""
  if mesh is None:
    return jax.device_put(tree)
  return jax.device_put(tree, NamedSharding(mesh, PartitionSpec()))


def divisor(number: int, most: int) -> int:
  """Returns the largest divisor of ``number`` that is at most ``most``.

  Example:
    >>> divisor(12, 8), divisor(11, 8)
    (6, 1)
  """
  return max(side for side in range(1, most + 1) if number % side == 0)
