"""How the axis of the workers is laid out where the code is being traced.

An operator names one axis, ``'workers'``. What is bound when it is traced may
be that axis itself (a `jax.vmap`, a `jax.pmap`, a `jax.shard_map` with one
worker on each device) or a pair. On a packed mesh these are the devices, and
the workers that share a device; on a mesh of machines, the machines, and the
workers of a machine. A pair has names of its own, so a plain
``jax.lax.pmean(x, 'workers')`` inside such a program is an error and not an
average over a part of the workers.
"""

import contextlib
import contextvars
import dataclasses

from jax import lax

from decopt import base

# Without `executed_as`, under a jax.vmap, jax.pmap or jax.shard_map of the
# user's own, exchanges are written so that they work under all of them.
_layout = contextvars.ContextVar('decopt_layout', default=None)


@dataclasses.dataclass(frozen=True)
class Axis:
  """The axis of the workers as it is bound here.

  Worker ``w`` is the ``w % local``-th one on device ``w // local``.

  Attributes:
    name: what the collectives of jax call the devices, or the only axis. On a
      mesh of machines it is a tuple, (machines, workers of a machine): two axes
      of devices act as one, machine by machine.
    devices: size of this axis.
    local: workers on each device; None when one axis holds all workers.
    local_name: what the collectives of jax call those, if there are any.
    inner: workers of a machine, on a mesh of machines; None on others.
  """

  name: base.AxisName
  devices: int
  local: int | None = None
  local_name: base.AxisName | None = None
  inner: int | None = None

  @property
  def workers(self) -> int:
    return self.devices * (self.local or 1)

  @property
  def device_name(self) -> base.AxisName:
    return self.name


def device_axis(axis_name: base.AxisName) -> str:
  """Name of the device half of a packed axis."""
  return f'{axis_name} by device'


def local_axis(axis_name: base.AxisName) -> str:
  """Name of the half of a packed axis whose members share a device."""
  return f'{axis_name} on a device'


def machine_axis(axis_name: base.AxisName) -> str:
  """Name of the outer axis of a mesh of machines."""
  return f'{axis_name} by machine'


def inner_axis(axis_name: base.AxisName) -> str:
  """Name of the inner axis of a mesh of machines."""
  return f'{axis_name} of a machine'


def machine_pair(axis_name: base.AxisName) -> tuple[str, str]:
  """Names of both axes of a mesh of machines, the outer one first."""
  return machine_axis(axis_name), inner_axis(axis_name)


def of_mesh(names: tuple[base.AxisName, ...]) -> base.AxisName:
  """Name of the axis of the workers on a mesh whose axes have these names."""
  if len(names) == 2:
    return str(names[0]).removesuffix(machine_axis(''))
  return names[0]


def bound_axis(axis_name: base.AxisName | Axis) -> Axis:
  """Returns the `Axis` called ``axis_name`` that is bound here.

  Args:
    axis_name: name that `decopt.spmd`, `jax.vmap`, `jax.pmap` or
      `jax.shard_map` gave to the axis of the workers; or an `Axis`, which is
      returned.

  Raises:
    NameError: when no such axis is bound.
  """
  if isinstance(axis_name, Axis):
    return axis_name
  size = _size(axis_name)
  if size is not None:
    return Axis(axis_name, size)
  packed = device_axis(axis_name), local_axis(axis_name)
  devices, local = map(_size, packed)
  if devices is not None and local is not None:
    return Axis(packed[0], devices, local, packed[1])
  pair = machine_pair(axis_name)
  machines, inner = map(_size, pair)
  if machines is not None and inner is not None:
    return Axis(pair, machines * inner, inner=inner)
  raise NameError(
    f'no axis named {axis_name!r} is bound here. A transformation that '
    'communicates runs inside a function of one worker: wrap that function '
    f'in decopt.spmd(..., axis_name={axis_name!r}), or in jax.vmap with '
    f'axis_name={axis_name!r}.'
  )


def _size(axis_name) -> int | None:
  try:
    return lax.axis_size(axis_name)
  except NameError:
    return None


@contextlib.contextmanager
def executed_as(layout: str):
  """Says how the program traced inside will be executed.

  It decides how an exchange is written, never what it computes.

  Args:
    layout: ``'simulation'``, all workers on one device, where a message is a
      read and nothing is gained by gathering leaves into buckets;
      ``'unrolled'``, the same with every worker's buffers apart; or
      ``'mesh'``, where a permutation of workers need not be a full one, as it
      must be under `jax.vmap`.
  """
  token = _layout.set(layout)
  try:
    yield
  finally:
    _layout.reset(token)


def is_simulation() -> bool:
  """Says whether all workers of the traced program share one device."""
  return _layout.get() in ('simulation', 'unrolled')


def is_unrolled() -> bool:
  """Says whether workers share one device, with buffers of their own."""
  return _layout.get() == 'unrolled'


def is_mesh() -> bool:
  """Says whether the axis of the workers is known to be one of devices."""
  return _layout.get() == 'mesh'
