"""How the axis of the workers is laid out where the code is being traced.

An operator names one axis, ``'workers'``. What is bound when it is traced may
be that axis itself (a `jax.vmap`, a `jax.pmap`, a `jax.shard_map` with one
worker on each device) or, on a packed mesh, a pair: the devices, and the
workers that share a device. The pair has names of its own, so a plain
``jax.lax.pmean(x, 'workers')`` inside a packed program is an error and not an
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
    name: what operators call it.
    devices: size of the device axis, or of the only axis.
    local: workers on each device; None when one axis holds all workers.
  """

  name: base.AxisName
  devices: int
  local: int | None = None

  @property
  def workers(self) -> int:
    return self.devices * (self.local or 1)

  @property
  def device_name(self) -> base.AxisName:
    return device_axis(self.name) if self.local else self.name

  @property
  def local_name(self) -> base.AxisName:
    return local_axis(self.name)


def device_axis(axis_name: base.AxisName) -> str:
  """Name of the device half of a packed axis."""
  return f'{axis_name} by device'


def local_axis(axis_name: base.AxisName) -> str:
  """Name of the half of a packed axis whose members share a device."""
  return f'{axis_name} on a device'


def bound_axis(axis_name: base.AxisName) -> Axis:
  """Returns the `Axis` called ``axis_name`` that is bound here.

  Args:
    axis_name: name that `decopt.spmd`, `jax.vmap`, `jax.pmap` or
      `jax.shard_map` gave to the axis of the workers.

  Raises:
    NameError: when no such axis is bound.
  """
  size = _size(axis_name)
  if size is not None:
    return Axis(axis_name, size)
  devices, local = _size(device_axis(axis_name)), _size(local_axis(axis_name))
  if devices is not None and local is not None:
    return Axis(axis_name, devices, local)
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
