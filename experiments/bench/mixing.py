"""The mixing suite: what an exchange costs through decopt and by hand.

| case | what runs |
|---|---|
| ring8, one_peer8 | gossip on 25 million parameters in 60 leaves, simulated |
| ring8_mesh | the same on a ring of 8 devices |
| ring8_memory | the most memory that ring8 holds, over its parameters |
| regular1024 | 1,024 workers with 4 random neighbours each, simulated |
| logistic16, 100, 1000 | logistic regression on a ring, all steps in one scan |
| compile64 | from nothing to the end of the first round; in seconds |

The hand-written programs (`mixing_references`) keep all parameters in one flat
buffer; decopt gets the tree. Those of regular1024 and compile64 do something
simpler, which decopt is to be almost as fast as: a graph whose neighbours are
found by rolling an array, and the ring. There a witness says whether decopt's
numbers are right.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import decopt
from experiments import errors
from experiments.bench import cases as cases_lib
from experiments.bench import mixing_references as references

#: Makes the tree 25 million parameters.
WIDTH = 592
RATE = 0.1
SAMPLES, FEATURES = 16, 64


def cases() -> list[cases_lib.Case]:
  """Returns the rows of the suite, each with the largest ratio it may have."""
  case = cases_lib.Case
  return [
    case('ring8', 1.1, ring, repeats=9),
    case('one_peer8', 1.1, one_peer, repeats=9),
    case('ring8_mesh', 1.1, ring_mesh, repeats=9, devices=8),
    case('ring8_memory', 2.5, ring_memory),
    case('regular1024', 1.5, regular, repeats=9),
    case('logistic16', 1.1, lambda: logistic(16, steps=30_000), repeats=31),
    case('logistic100', 1.1, lambda: logistic(100, steps=5_000), repeats=31),
    case('logistic1000', 1.1, lambda: logistic(1000, steps=500), repeats=31),
    case('compile64', 2.0, compilation, repeats=9),
  ]


def ring(workers=8, width: int = WIDTH, steps: int = 3) -> cases_lib.Contest:
  """A round is a sum of three rows."""
  tree = _random_tree(workers, width)
  run = references.repeated(references.ring, steps, _sampled(tree))
  by_hand = {'roll': cases_lib.looped(run, _packed(tree))}
  ours = cases_lib.looped(*gossip(decopt.ring(workers), tree, steps))
  return _rounds(ours, by_hand, steps)


def one_peer(
  workers=8, width: int = WIDTH, steps: int = 3
) -> cases_lib.Contest:
  """A round is a sum of two rows, others in each round of the period."""
  tree = _random_tree(workers, width)
  run = references.repeated(references.one_peer, steps, _sampled(tree))
  by_hand = {'roll': cases_lib.looped(run, _packed(tree))}
  topology = decopt.one_peer_exponential(workers)
  ours = cases_lib.looped(*gossip(topology, tree, steps))
  return _rounds(ours, by_hand, steps)


def ring_mesh(
  workers=8, width: int = WIDTH, steps: int = 3
) -> cases_lib.Contest:
  """Two messages leave each device in a round."""
  tree = _random_tree(workers, width)
  run = references.ring_mesh(workers, steps, _sampled(tree))
  x = references.place(_packed(tree))
  by_hand = {'ppermute': cases_lib.looped(run, x)}
  mesh = decopt.make_mesh(workers)
  ours = gossip(decopt.ring(workers), tree, steps, mesh=mesh)
  return _rounds(cases_lib.looped(*ours), by_hand, steps)


def ring_memory(workers=8, width: int = WIDTH) -> cases_lib.Footprint:
  """Compiles and runs rounds, and asks the system what that took.

  The parameters are made where they stay, leaf by leaf, so that the peak of the
  process is that of the program. What was resident before does not count.
  """
  jnp.zeros(1).block_until_ready()  # the backend starts with the first array
  before = _resident('VmRSS')
  tree = {
    name: jnp.full((workers, *shape), 0.5)
    for name, shape in transformer_shapes(width).items()
  }
  stacked = sum(leaf.nbytes for leaf in tree.values())
  program = cases_lib.looped(*gossip(decopt.ring(workers), tree, steps=1))
  del tree
  for _ in range(3):
    program()
  return cases_lib.Footprint(
    _resident('VmHWM') - before, stacked, 'stacked parameters'
  )


def regular(
  workers: int = 1024, size: int = 100_000, steps: int = 3
) -> cases_lib.Contest:
  """Four neighbours, found by index; by hand four that are found by rolling."""
  topology = decopt.random_regular(workers, 4)
  x = _random((workers, size))
  sample = references.sampled([size])
  same = references.heard(np.nonzero(_links(topology))[1].reshape(workers, 4))
  forms = {
    name: cases_lib.looped(
      references.repeated(step, steps, sample), jnp.array(x)
    )
    for name, step in (('circulant', references.circulant), ('heard', same))
  }
  ours = cases_lib.looped(*gossip(topology, {'x': x}, steps))
  witness = {'heard': forms.pop('heard')}
  return _rounds(ours, forms, steps, witness)


def logistic(workers: int, steps: int) -> cases_lib.Contest:
  """Decentralized gradient descent: D-SGD with all examples of a worker."""
  random = np.random.default_rng(0)
  features = random.standard_normal((workers, SAMPLES, FEATURES), np.float32)
  labels = np.sign(features[..., 0] + random.standard_normal(SAMPLES))
  rows = jnp.asarray(features * labels[..., None], jnp.float32)
  start = jnp.zeros((workers, FEATURES))
  optimizer = decopt.dsgd(optax.sgd(RATE), decopt.ring(workers))

  def worker(held, rows):
    def step(held, _):
      x, state = held
      slopes = jax.nn.sigmoid(-(rows @ x)) / -SAMPLES
      updates, state = optimizer.update(slopes @ rows, state, x)
      return (optax.apply_updates(x, updates), state), None

    held, _ = jax.lax.scan(step, held, length=steps)
    return held, held[0]

  run = decopt.spmd(worker, workers=workers, donate_argnums=0)
  state = decopt.spmd(optimizer.init, workers=workers)(start)
  by_hand = references.logistic(RATE, steps)
  return cases_lib.Contest(
    cases_lib.looped(run, (jnp.array(start), state), rows),
    {'roll': cases_lib.looped(by_hand, start, rows)},
    'iterations/s',
    steps,
  )


def compilation(workers: int = 64, width: int = 32) -> cases_lib.Contest:
  """A graph with a period, held against one without, both through decopt."""
  jax.config.update('jax_enable_compilation_cache', False)
  tree = _random_tree(workers, width)
  run = references.repeated(references.one_peer, 1, _sampled(tree))
  witness = cases_lib.looped(run, _packed(tree))
  tree = jax.tree.map(jnp.asarray, tree)

  def compiled(make_topology):
    # A new function each time, of which jax has seen nothing.
    topology = make_topology(workers)
    run, held = gossip(topology, tree, steps=1, donate=False)
    _, sample = run.lower(held).compile()(held)
    return np.asarray(sample)

  return cases_lib.Contest(
    functools.partial(compiled, decopt.one_peer_exponential),
    {'ring': functools.partial(compiled, decopt.ring)},
    'seconds',
    witnesses={'roll': witness},
  )


def gossip(
  topology: decopt.Topology,
  tree: Any,
  steps: int,
  *,
  mesh: jax.sharding.Mesh | None = None,
  donate: bool = True,
) -> tuple[Callable, Any]:
  """Rounds of gossip on a stacked tree.

  Returns:
    ``(run, held)`` with ``run(held) -> (held, sample)``; ``held`` is the tree
    and the operator's state.
  """
  operator = decopt.gossip(topology)

  def worker(held):
    def step(held, _):
      return operator.update(*held), None

    held, _ = jax.lax.scan(step, held, length=steps)
    leaves = [leaf.ravel() for leaf in jax.tree.leaves(held[0])]
    sample = [leaf[references.places(leaf.size)] for leaf in leaves]
    return held, jnp.concatenate(sample)

  run = decopt.spmd(
    worker,
    workers=topology.workers,
    mesh=mesh,
    donate_argnums=(0,) if donate else (),
  )
  held = jax.tree.map(jnp.asarray, (tree, operator.init(tree)))
  return run, held if mesh is None else decopt.place(held, mesh)


def transformer_shapes(
  width: int, blocks: int = 6
) -> dict[str, tuple[int, ...]]:
  """Parameters of one worker: 10 leaves a block, half of them small."""
  block = {
    'norm_1': (width,),
    'attention': (width, 3 * width),
    'attention_bias': (3 * width,),
    'project': (width, width),
    'project_bias': (width,),
    'norm_2': (width,),
    'up': (width, 4 * width),
    'up_bias': (4 * width,),
    'down': (4 * width, width),
    'down_bias': (width,),
  }
  return {
    f'{i}_{name}': shape for i in range(blocks) for name, shape in block.items()
  }


def _rounds(ours, by_hand, steps, witnesses=None) -> cases_lib.Contest:
  return cases_lib.Contest(
    ours, by_hand, 'rounds/s', steps, witnesses=witnesses or {}
  )


def _random_tree(workers, width, blocks=6) -> dict[str, np.ndarray]:
  return {
    name: _random((workers, *shape), seed)
    for seed, (name, shape) in enumerate(
      transformer_shapes(width, blocks).items()
    )
  }


def _random(shape, seed=0):
  return np.random.default_rng(seed).random(shape, np.float32)


def _packed(tree) -> np.ndarray:
  rows = [x.reshape(len(x), -1) for x in jax.tree.leaves(tree)]
  return np.concatenate(rows, axis=1)


def _sampled(tree):
  return references.sampled([x[0].size for x in jax.tree.leaves(tree)])


def _links(topology):
  return (topology.weights[0] > 0) & ~np.eye(topology.workers, dtype=bool)


def _resident(field: str) -> int:
  """Bytes of this process in memory, now (VmRSS) or at most (VmHWM)."""
  try:
    with open('/proc/self/status') as file:
      (line,) = [line for line in file if line.startswith(f'{field}:')]
  except OSError as error:
    raise errors.UserError(
      f'ring8_memory asks Linux how much memory it took: {error}. Leave it out '
      'with --only.'
    ) from error
  return int(line.split()[1]) * 1024
