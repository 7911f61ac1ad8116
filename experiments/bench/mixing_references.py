"""Mixing by hand: the programs that the mixing suite holds decopt against.

All parameters of a worker lie in one flat buffer, neighbours are read by
rolling the array of all workers, or sent by `jax.lax.ppermute`, and many rounds
run in one dispatch, which overwrites the buffer.

Programs are ``run(x) -> (x, sample)``: ``x`` is float32 ``[workers, size]`` and
a sample is what `sampled` reads of it, enough to tell whether
two programs computed the same and too little to cost time.
"""

import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import Mesh
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec

_AXIS = 'workers'
_STACKED = PartitionSpec(_AXIS)
#: Places at which a sample reads an array.
_PLACES = 16

Step = Callable[[jax.Array, jax.Array], jax.Array]


def ring(x: jax.Array, t: jax.Array) -> jax.Array:
  """Averages each worker with its two neighbours."""
  del t
  return (x + jnp.roll(x, 1, axis=0) + jnp.roll(x, -1, axis=0)) / 3


def one_peer(x: jax.Array, t: jax.Array) -> jax.Array:
  """Averages with the worker 1, 2, 4, ... places before, by turns."""
  shifts = _powers_of_two(len(x))
  rounds = [functools.partial(_with_shift, shift=shift) for shift in shifts]
  return jax.lax.switch(t % len(shifts), rounds, x)


def circulant(x: jax.Array, t: jax.Array) -> jax.Array:
  """Averages with the two workers before and the two after."""
  del t
  rolled = [jnp.roll(x, shift, axis=0) for shift in (-2, -1, 1, 2)]
  return sum(rolled, x) / 5


def heard(neighbours: np.ndarray) -> Step:
  """Averages with the neighbours that a table of indices names.

  Args:
    neighbours: int ``[workers, degree]``.
  """
  columns = [jnp.asarray(column) for column in neighbours.T]

  def step(x, t):
    del t
    rows = [x.at[i].get(mode='promise_in_bounds') for i in columns]
    return sum(rows, x) / (1 + len(columns))

  return step


def repeated(step: Step, steps: int, sample: Callable[[jax.Array], jax.Array]):
  """Makes a dispatch of a step ``(x, t) -> x``, for t = 0, 1, ..."""

  @functools.partial(jax.jit, donate_argnums=0)
  def run(x):
    x, _ = jax.lax.scan(
      lambda x, t: (step(x, t), None), x, jnp.arange(steps, dtype=jnp.int32)
    )
    return x, sample(x)

  return run


def ring_mesh(
  workers: int, steps: int, sample: Callable[[jax.Array], jax.Array]
):
  """`ring` with a worker on each device; the sample is taken by each."""
  after = [(i, (i + 1) % workers) for i in range(workers)]
  before = [(j, i) for i, j in after]

  def worker(x):
    def body(x, _):
      left = jax.lax.ppermute(x, _AXIS, after)
      right = jax.lax.ppermute(x, _AXIS, before)
      return (x + left + right) / 3, None

    x, _ = jax.lax.scan(body, x[0], length=steps)
    return x[None], sample(x[None])

  mapped = jax.shard_map(
    worker,
    mesh=_mesh(workers),
    in_specs=_STACKED,
    out_specs=_STACKED,
    check_vma=False,
  )
  return functools.partial(jax.jit, donate_argnums=0)(mapped)


def place(x: np.ndarray) -> jax.Array:
  """Puts a row on each device."""
  return jax.device_put(x, NamedSharding(_mesh(len(x)), _STACKED))


def logistic(rate: float, steps: int):
  """Logistic regression over a ring, all steps in one scan.

  Returns:
    ``run(x, rows) -> (x, x)``. ``rows`` are features times the label, 1 or -1:
    float32 ``[workers, samples, features]``.
  """

  @functools.partial(jax.jit, donate_argnums=0)
  def run(x, rows):
    def body(x, _):
      margins = jnp.einsum('nsf,nf->ns', rows, x)
      slopes = jax.nn.sigmoid(-margins) / -rows.shape[1]
      gradients = jnp.einsum('nsf,ns->nf', rows, slopes)
      return ring(x, 0) - rate * gradients, None

    x, _ = jax.lax.scan(body, x, length=steps)
    return x, x

  return run


def places(size: int) -> np.ndarray:
  """Where a sample reads an array of so many entries: all over it."""
  return np.unique(np.linspace(0, size - 1, _PLACES).astype(int))


def sampled(sizes: Sequence[int]) -> Callable[[jax.Array], jax.Array]:
  """Reads each of the arrays that a flat buffer consists of.

  Args:
    sizes: of the arrays, in their order.

  Returns:
    A function ``[workers, sum(sizes)] -> [workers, entries]``.
  """
  starts = np.cumsum([0, *sizes[:-1]])
  columns = np.concatenate(
    [start + places(n) for start, n in zip(starts, sizes, strict=True)]
  )
  return lambda x: x[:, columns]


def _with_shift(x, shift):
  return (x + jnp.roll(x, shift, axis=0)) / 2


def _powers_of_two(workers):
  return [1 << k for k in range((workers - 1).bit_length())]


def _mesh(workers):
  return Mesh(
    np.asarray(jax.devices()[:workers]), (_AXIS,), axis_types=(AxisType.Auto,)
  )
