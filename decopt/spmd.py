"""One function of one worker, executed for all of them.

A worker function is written for one worker and may talk to the others through
the axis ``'workers'``. `spmd` runs it for all: as a simulation on one device,
on a mesh with one worker on each device, or packed, with several. Outside,
arrays are stacked, the leading axis is the worker; inside they are plain.
Nothing else in the library knows how workers are executed.
"""

import functools
import numbers
from collections.abc import Callable, Sequence

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
from decopt import unrolled

MAPPINGS = ('vmap', 'unrolled')


def spmd(
  worker_fn: Callable,
  *,
  workers: int | None = None,
  mesh: Mesh | None = None,
  mapping: str = 'vmap',
  shared_argnums: int | Sequence[int] = (),
  donate_argnums: int | Sequence[int] = (),
  axis_name: base.AxisName = base.WORKERS,
) -> Callable:
  """Returns a function of stacked arrays that runs ``worker_fn`` for all.

  | ``mesh`` | executed as | for |
  |---|---|---|
  | None | `jax.vmap` on one device | a laptop, hundreds of workers |
  | one device a worker | `jax.shard_map` | TPUs, GPUs, virtual CPU devices |
  | fewer devices | `jax.vmap` inside `jax.shard_map` | more workers |

  The three compute the same numbers up to float rounding. On a packed mesh
  the axis is made of two, which the operators of decopt know and a plain
  ``jax.lax.pmean(x, 'workers')`` does not: use `decopt.mean` there.

  Args:
    worker_fn: function of trees of arrays, seen from one worker.
    workers: number of workers; default the leading axis of the arguments.
    mesh: from `make_mesh`; None simulates on one device. The number of workers
      is a multiple of its number of devices.
    mapping: how a simulation is written, ``'vmap'`` or ``'unrolled'``: every
      worker's buffers apart, and the program repeated for each. Unrolled
      programs run faster on CPU and take longer to compile.
    shared_argnums: positions of arguments that all workers read and that have
      no worker axis, such as a data set.
    donate_argnums: positions of arguments whose buffers the results may
      overwrite, as in `jax.jit`.
    axis_name: the name of the axis inside ``worker_fn``.

  Returns:
    A jitted function of positional arguments. These and its results have a
    leading axis of size ``workers``, except for shared arguments and for every
    `decopt.Clock`.

  Raises:
    ValueError: when it is built, for an unknown ``mapping``; when it is
      called, for an argument without the leading worker axis, or for a number
      of workers that does not fit the mesh.

  Example:
    >>> import jax.numpy as jnp
    >>> centre = decopt.spmd(lambda x: x - decopt.mean(x))
    >>> centre(jnp.arange(4.0))
    Array([-1.5, -0.5,  0.5,  1.5], dtype=float32)
  """
  if mapping not in MAPPINGS:
    raise ValueError(f'mapping is {mapping!r}; it must be one of {MAPPINGS}.')
  if mapping == 'unrolled' and mesh is not None:
    raise ValueError(
      "mapping='unrolled' is a way to write a simulation, but a mesh is "
      "given; use mapping='vmap', or mesh=None."
    )
  shared = _as_tuple(shared_argnums)

  @functools.partial(jax.jit, donate_argnums=_as_tuple(donate_argnums))
  def run(*args):
    positions = [position % len(args) for position in shared]
    split = stacking.split(args, positions)
    count = stacking.worker_count(args, positions, workers)
    # Results are split in the same way; their structure is known once traced.
    structure = []

    def flat_fn(clocks, stacked):
      out = worker_fn(*split.merge(clocks, stacked))
      parts = stacking.split((out,))
      structure.append(parts)
      return parts.shared, parts.stacked

    execute = _executor(mesh, mapping, axis_name, count)
    results = execute(flat_fn)(split.shared, split.stacked)
    return structure[-1].merge(*results)[0]

  return run


def _executor(mesh, mapping, axis_name, workers):
  """Maps (shared, stacked) -> (shared, stacked) functions over workers."""
  if mesh is not None:
    return functools.partial(
      _on_mesh, mesh=mesh, axis_name=axis_name, workers=workers
    )
  if mapping == 'unrolled':
    return functools.partial(
      unrolled.stacked, axis_name=axis_name, workers=workers
    )
  return functools.partial(_simulated, axis_name=axis_name, workers=workers)


def _simulated(fn, *, axis_name, workers):
  def run(shared, stacked):
    with axes.executed_as('simulation'):
      return _vmap(fn, axis_name, workers)(shared, stacked)

  return run


def _vmap(fn, axis_name, size):
  mapped = jax.vmap(
    fn,
    in_axes=(None, 0),
    out_axes=(None, 0),
    axis_name=axis_name,
    axis_size=size,
  )

  def run(shared, stacked):
    try:
      return mapped(shared, stacked)
    except ValueError as error:
      if 'out_axes is None' not in str(error):
        raise
      raise ValueError(stacking.CLOCK_DIFFERS) from error

  return run


def _on_mesh(fn, *, mesh, axis_name, workers):
  """One worker on each device, or `jax.vmap` over those of a device."""
  spread = _execution_mesh(mesh, workers, axis_name)
  (name,) = spread.axis_names
  if name == axis_name:
    # A unit axis is stripped, so that on a mesh of one worker a device the
    # program of a device is the same as a hand-written one.
    block_fn = _strip_unit_axis(fn)
  else:
    local = workers // mesh.size
    block_fn = _vmap(fn, axes.local_axis(axis_name), local)
  spec = PartitionSpec(name)
  # check_vma=False: with the check on, the gradient with respect to a
  # replicated argument is silently summed over devices, and a conditional
  # whose branches differ in what they averaged does not type-check.
  mapped = jax.shard_map(
    block_fn,
    mesh=spread,
    in_specs=(PartitionSpec(), spec),
    out_specs=(PartitionSpec(), spec),
    check_vma=False,
  )

  def run(shared, stacked):
    with axes.executed_as('mesh'):
      return mapped(shared, stacked)

  return run


def _execution_mesh(mesh, workers, axis_name) -> Mesh:
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


def _strip_unit_axis(fn):
  def block_fn(shared, stacked):
    shared, stacked = fn(shared, [x[0] for x in stacked])
    return shared, [jnp.asarray(x)[None] for x in stacked]

  return block_fn


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
  spread = _execution_mesh(mesh, workers, mesh.axis_names[0])
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


def _as_tuple(argnums) -> tuple[int, ...]:
  return (argnums,) if isinstance(argnums, int) else tuple(argnums)
