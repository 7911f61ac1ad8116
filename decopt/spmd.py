"""One function of one worker, executed for all of them.

A worker function is written for one worker and may talk to the others through
the axis ``'workers'``. `spmd` runs it for all: as a simulation on one device,
on a mesh with one worker on each device, or packed, with several. Outside,
arrays are stacked, the leading axis is the worker; inside they are plain.
Nothing else in the library knows how workers are executed.
"""

import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jax.sharding import PartitionSpec

from decopt import axes
from decopt import base
from decopt import placement
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
  | the same, `make_mesh(machines=)` | over two axes | links of two speeds |
  | fewer devices | `jax.vmap` inside `jax.shard_map` | more workers |

  All compute the same numbers up to float rounding. On a packed mesh and on a
  mesh of machines the axis is made of two, which the operators of decopt know
  and a plain ``jax.lax.pmean(x, 'workers')`` does not: use `decopt.mean` there.

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
  spread = placement.execution_mesh(mesh, workers, axis_name)
  local = workers // mesh.size
  if local == 1:
    # A unit axis is stripped, so that on a mesh of one worker a device the
    # program of a device is the same as a hand-written one.
    block_fn = _strip_unit_axis(fn)
  else:
    block_fn = _vmap(fn, axes.local_axis(axis_name), local)
  spec = PartitionSpec(spread.axis_names)
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


def _strip_unit_axis(fn):
  def block_fn(shared, stacked):
    shared, stacked = fn(shared, [x[0] for x in stacked])
    return shared, [jnp.asarray(x)[None] for x in stacked]

  return block_fn


def _as_tuple(argnums) -> tuple[int, ...]:
  return (argnums,) if isinstance(argnums, int) else tuple(argnums)
