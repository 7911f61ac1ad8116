"""Arrays of a mesh that spans several processes, each with devices of its own.

A process holds the part of an array that lies on its devices. All processes run
the same program, call these functions in the same order, and give the same
values.
"""

import functools

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec
from jax.sharding import Sharding


def put(x, sharding: Sharding) -> jax.Array:
  """Places an array that every process holds as a whole.

  Args:
    x: an array, the same in every process; or one that is placed already.
    sharding: where it goes. Only the parts for this process's own devices are
      copied.
  """
  if sharding.is_fully_addressable:
    return jax.device_put(x, sharding)
  if isinstance(x, jax.Array) and not x.is_fully_addressable:
    return x if x.sharding == sharding else _replaced(x, sharding)
  if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
    words = put(jax.random.key_data(x), sharding)
    return jax.random.wrap_key_data(words, impl=jax.random.key_impl(x))
  host = np.asarray(x)
  return jax.make_array_from_callback(
    host.shape, sharding, lambda index: host[index]
  )


def fetch(tree):
  """Returns a tree of whole numpy arrays, in every process.

  Where parts lie on devices of other processes they are sent to all, one array
  at a time, so all processes have to call it.

  Args:
    tree: arrays on whatever devices.
  """
  return jax.tree.map(_fetch, tree)


def _fetch(x) -> np.ndarray:
  local = not isinstance(x, jax.Array) or x.is_fully_addressable
  if local or x.is_fully_replicated:
    return np.asarray(x)
  everywhere = NamedSharding(x.sharding.mesh, PartitionSpec())
  return np.asarray(_replaced(x, everywhere))


def _replaced(x, sharding) -> jax.Array:
  return _identity(sharding)(x)


@functools.lru_cache(maxsize=64)
def _identity(sharding):
  return jax.jit(lambda x: x, out_shardings=sharding)
