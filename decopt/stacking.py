"""Which arrays of a tree have a worker axis: all but those that are shared.

Shared are the leaves of every `decopt.Clock` and `decopt.Shared`, and whole
arguments that are said to be so.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from decopt import base

#: What to say of a clock that a worker function returns batched.
CLOCK_DIFFERS = (
  'a decopt.Clock or decopt.Shared, which all workers share, would come to '
  'differ between workers: something around it decides for each worker on its '
  'own whether it moves. optax.MultiSteps and optax.apply_if_finite do; put '
  'them around the local optimizer only, and what communicates after them: '
  'chain(MultiSteps(optimizer, k).gradient_transformation(), '
  'mix_iterates(...)).'
)


@dataclasses.dataclass(frozen=True)
class Split:
  """The leaves of some trees, those that all workers share apart.

  Attributes:
    shared: leaves without a worker axis.
    stacked: leaves with one.
    is_shared: for each leaf, whether it is among the shared ones.
    treedef: structure of the trees.
  """

  shared: list[Any]
  stacked: list[Any]
  is_shared: tuple[bool, ...]
  treedef: jax.tree_util.PyTreeDef

  def merge(self, shared: Sequence[Any], stacked: Sequence[Any]):
    """Rebuilds the trees from leaves of one's own."""
    shared, stacked = iter(shared), iter(stacked)
    leaves = [next(shared if mine else stacked) for mine in self.is_shared]
    return jax.tree.unflatten(self.treedef, leaves)


def split(trees: Sequence[Any], shared_positions: Sequence[int] = ()) -> Split:
  """Splits the leaves of ``trees``.

  Args:
    trees: a tuple of trees.
    shared_positions: which of them have no worker axis at all. Of the others,
      only clocks and what is `decopt.Shared` have none.
  """
  is_shared = []
  for position, tree in enumerate(trees):
    if position in shared_positions:
      is_shared += [True] * len(jax.tree.leaves(tree))
    else:
      is_shared += shared_flags(tree)
  leaves, treedef = jax.tree.flatten(tuple(trees))
  parts = {True: [], False: []}
  for leaf, mine in zip(leaves, is_shared, strict=True):
    parts[mine].append(leaf)
  return Split(parts[True], parts[False], tuple(is_shared), treedef)


def shared_flags(tree) -> list[bool]:
  """Says for each leaf of a tree whether all workers share it."""
  flags = []
  for node in jax.tree.leaves(tree, is_leaf=base.is_shared):
    flags += [base.is_shared(node)] * len(jax.tree.leaves(node))
  return flags


def map_stacked(fn: Callable, tree, shared: Callable = lambda leaf: leaf):
  """Maps ``fn`` over the stacked arrays of a tree, ``shared`` over the rest."""
  leaves, treedef = jax.tree.flatten(tree)
  results = [
    shared(leaf) if is_shared else fn(leaf)
    for leaf, is_shared in zip(leaves, shared_flags(tree), strict=True)
  ]
  return jax.tree.unflatten(treedef, results)


def worker_count(
  args: Sequence[Any], shared: Sequence[int], workers: int | None
) -> int:
  """Returns the size of the worker axis, and checks that all arrays have it.

  Args:
    args: arguments of a function of stacked arrays.
    shared: positions of those without a worker axis.
    workers: what the axis must be, or None to read it off.

  Raises:
    ValueError: for an array without the axis, or of another size.
  """
  for position, arg in enumerate(args):
    if position in shared:
      continue
    flat, _ = jax.tree_util.tree_flatten_with_path(arg)
    for (path, leaf), is_shared in zip(flat, shared_flags(arg), strict=True):
      if is_shared:
        continue
      shape = jnp.shape(leaf)
      if workers is None and shape:
        workers = shape[0]
      if not shape or shape[0] != workers:
        name = f'argument {position}{jax.tree_util.keystr(path)}'
        raise ValueError(_advice(name, shape, workers))
  if workers is None:
    raise ValueError(
      'spmd cannot tell the number of workers from arguments without '
      'arrays; pass workers=.'
    )
  return workers


def _advice(name, shape, workers) -> str:
  if workers is None:
    return (
      f'{name} is a scalar and has no leading worker axis; give every worker '
      'a copy with decopt.replicate(tree, workers), or name the argument in '
      'shared_argnums.'
    )
  return (
    f'{name} has shape {shape}, without a leading worker axis of size '
    f'{workers}; call decopt.replicate(tree, workers={workers}) first, or '
    'name the argument in shared_argnums.'
  )
