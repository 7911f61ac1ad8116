"""Gossip SGD by hand on a mesh of two devices: `shard_map` and `ppermute`.

The forms are as in `references`, with one worker on each device. All send one
message a step: the parameters as one flat buffer.
"""

import functools
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType
from jax.sharding import Mesh
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec

from experiments.bench import references

DEVICES = 2
_AXIS = 'workers'
_STACKED = PartitionSpec(_AXIS)


def flat(loss: references.Loss, params: Any, workers: int, rate: float):
  """One flat buffer on each device, moved and sent as it is."""
  _check(workers)
  value_and_gradient = references.flat_gradient(loss, params)

  def step(x, batch):
    value, gradient = value_and_gradient(x, batch)
    x = x - rate * gradient
    return (x + _from_partner(x)) / 2, value

  return _scanned(step), _copies(jax.jit(references.pack)(params))


def one_message(loss: references.Loss, params: Any, workers: int, rate: float):
  """Parameters apart; gathered into one flat buffer only to be sent."""
  _check(workers)

  def step(tree, batch):
    value, gradient = jax.value_and_grad(loss)(tree, batch)
    tree = jax.tree.map(lambda x, g: x - rate * g, tree, gradient)
    received = references.unpack(_from_partner(references.pack(tree)), tree)
    return jax.tree.map(lambda x, y: (x + y) / 2, tree, received), value

  return _scanned(step), jax.tree.map(_copies, params)


def place(tree: Any, *, stacked: bool) -> Any:
  """Puts arrays on the mesh.

  Args:
    tree: arrays.
    stacked: whether they have a leading worker axis, which is spread over the
      devices; else each device has all of it.
  """
  spec = _STACKED if stacked else PartitionSpec()
  return jax.device_put(tree, NamedSharding(_mesh(), spec))


def _scanned(step):
  def worker(state, data, indices):
    def body(state, rows):
      return step(state, references.gather(data, rows))

    state, losses = jax.lax.scan(
      body, jax.tree.map(lambda x: x[0], state), indices[0]
    )
    return jax.tree.map(lambda x: x[None], state), losses[None]

  mapped = jax.shard_map(
    worker,
    mesh=_mesh(),
    in_specs=(_STACKED, PartitionSpec(), _STACKED),
    out_specs=(_STACKED, _STACKED),
    check_vma=False,
  )
  return functools.partial(jax.jit, donate_argnums=0)(mapped)


def _from_partner(x):
  return jax.lax.ppermute(x, _AXIS, [(0, 1), (1, 0)])


def _copies(x):
  return place(np.stack([x] * DEVICES), stacked=True)


def _mesh():
  return Mesh(
    np.asarray(jax.devices()[:DEVICES]), (_AXIS,), axis_types=(AxisType.Auto,)
  )


def _check(workers):
  if workers != DEVICES:
    raise ValueError(
      f'the hand-written mesh programs are for {DEVICES} workers that swap '
      f'parameters, but got workers={workers}.'
    )
