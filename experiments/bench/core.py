"""The core suite: what a step costs through decopt and by hand, and start-up.

| case | what runs |
|---|---|
| mlp16, mlp64 | perceptron 784-256-10, gossip SGD on a ring, `jax.vmap` |
| mlp16_auto, mlp64_auto | the same, ``gradient_mapping='auto'`` |
| transformer8 | byte-level transformer, gossip SGD on a ring, `jax.vmap` |
| mlp2_mesh | the perceptron, two workers on two devices |
| convnet8 | convnet on 32x32 images, ``gradient_mapping='auto'`` |
| all_reduce8 | the perceptron, all-reduce SGD, all batches as one |
| startup | a process, to the end of the first step; in seconds |

The programs of decopt are those that ``experiments.train`` runs: an optax
chain and `experiments.step`. The hand-written ones know nothing of either
(`references`, `mesh_references`, `models`). Both get the same parameters,
examples and order of examples.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
import optax

import decopt
from experiments import step as step_lib
from experiments import workloads
from experiments.bench import cases as cases_lib
from experiments.bench import mesh_references
from experiments.bench import models
from experiments.bench import references
from experiments.bench import startup
from experiments.workloads import networks
from experiments.workloads import supervised

RATE = 0.01
BATCH = 32

STACKED = {'leaves': references.leaves, 'flat': references.flat}
ALL = {**STACKED, 'apart': references.apart}


def cases() -> list[cases_lib.Case]:
  """Returns the rows of the suite, each with the largest ratio it may have."""
  mlp = functools.partial(gossip, mlp_workload, models.mlp_loss)
  case = cases_lib.Case
  return [
    case('mlp16', 1.05, lambda: mlp(16)),
    case('mlp16_auto', 0.92, lambda: mlp(16, mapping='auto')),
    case('mlp64', 1.05, lambda: mlp(64)),
    case('mlp64_auto', 0.92, lambda: mlp(64, mapping='auto')),
    case('transformer8', 1.05, transformer),
    case('convnet8', 1.05, convnet),
    case('mlp2_mesh', 1.05, mesh, devices=2),
    case('all_reduce8', 1.2, all_reduce),
    case('startup', 1.3, startup.contest, repeats=5),
  ]


def gossip(
  make_workload: Callable[[], workloads.Workload],
  loss: references.Loss,
  workers: int,
  *,
  forms: Mapping[str, Callable[..., Any]] = STACKED,
  steps: int | None = None,
  **options: Any,
) -> cases_lib.Contest:
  """Gossip SGD on a ring, simulated.

  Args:
    make_workload: gives data, parameters, and the loss that decopt trains.
    loss: the same by hand.
    workers: at least 3.
    forms: hand-written programs, see `references`.
    steps: in one dispatch; by default about as many as take 0.1 seconds.
    **options: batch and mapping, see `contest`.
  """
  optimizer = decopt.diffusion(optax.sgd(RATE), decopt.ring(workers))
  steps = steps or max(256 // workers, 1)
  return contest(
    make_workload(), optimizer, loss, forms, workers, steps, **options
  )


def transformer() -> cases_lib.Contest:
  """A small transformer over bytes, vmap against vmap."""
  heads = 4
  return gossip(
    functools.partial(workloads.WORKLOADS['text'][0], heads=heads),
    functools.partial(models.transformer_loss, heads=heads),
    workers=8,
    batch=8,
    steps=2,
  )


def convnet() -> cases_lib.Contest:
  """Convolutions, the default mapping against the best form of all."""
  return gossip(
    convnet_workload,
    models.convnet_loss,
    workers=8,
    mapping='auto',
    forms=ALL,
    batch=16,
    steps=2,
  )


def mesh(steps: int = 50) -> cases_lib.Contest:
  """Two devices with one worker each, which swap parameters at every step."""
  workers = mesh_references.DEVICES
  return contest(
    mlp_workload(),
    decopt.diffusion(optax.sgd(RATE), decopt.ring(workers)),
    models.mlp_loss,
    {'flat': mesh_references.flat, 'one message': mesh_references.one_message},
    workers,
    steps,
    mesh=decopt.make_mesh(workers),
  )


def all_reduce(workers: int = 8, steps: int = 32) -> cases_lib.Contest:
  """Data parallel: all workers stay equal, so their batches are one batch."""
  both = contest(
    mlp_workload(),
    decopt.all_reduce_sgd(optax.sgd(RATE)),
    models.mlp_loss,
    {'one batch': references.one_batch},
    workers,
    steps,
    mapping='auto',
  )
  # By hand there is one loss for all; decopt reports each worker's.
  return dataclasses.replace(both, decopt=lambda: both.decopt().mean(axis=0))


def contest(
  workload: workloads.Workload,
  optimizer: optax.GradientTransformation,
  loss: references.Loss,
  forms: Mapping[str, Callable[..., Any]],
  workers: int,
  steps: int,
  *,
  batch: int = BATCH,
  mapping: str = 'vmap',
  mesh: jax.sharding.Mesh | None = None,
) -> cases_lib.Contest:
  """Sets up decopt and the hand-written forms with the same of everything.

  Args:
    workload: gives data, parameters, and the loss that decopt trains.
    optimizer: the algorithm, as an optax chain.
    loss: the workload's loss by hand.
    forms: the algorithm by hand, see `references`.
    workers: number of workers.
    steps: in one dispatch.
    batch: examples of a worker in a step.
    mapping: gradient mapping of decopt's program.
    mesh: of `mesh_references.DEVICES` devices; None for a simulation.
  """
  random = np.random.default_rng(0)
  shape = workers, steps, batch
  indices = random.integers(workload.examples, size=shape, dtype=np.int32)
  data, indices = jax.device_put((workload.train, indices))
  if mesh is not None:
    data = mesh_references.place(data, stacked=False)
    indices = mesh_references.place(indices, stacked=True)
  state = step_lib.init_state(workload, optimizer, workers=workers, mesh=mesh)
  params = jax.tree.map(lambda x: np.asarray(x)[0], state.params)
  ours = step_lib.make_program(
    workload,
    optimizer,
    workers=workers,
    mesh=mesh,
    mapping=mapping,
    batch_size=batch,
  )
  by_hand = {}
  for name, form in forms.items():
    run, start = form(loss, params, workers, RATE)
    by_hand[name] = cases_lib.looped(run, start, data, indices)
  return cases_lib.Contest(
    cases_lib.looped(ours.run, ours.enter(state), data, indices, 0),
    by_hand,
    'worker-steps/s',
    workers * steps,
  )


def mlp_workload(pixels: int = 784, hidden: int = 256) -> workloads.Workload:
  """A perceptron pixels-hidden-10 on noise: the speed is that of any data."""
  return _images('mlp', networks.MLP(hidden), (8192, pixels))


def convnet_workload(side: int = 32) -> workloads.Workload:
  """A convnet 32-32-64 on noise in colour."""
  return _images(
    'convnet', networks.ConvNet((32, 32, 64)), (1024, side, side, 3)
  )


def _images(name, module, shape):
  random = np.random.default_rng(0)
  data = {
    'images': random.standard_normal(shape, np.float32),
    'labels': random.integers(10, size=shape[0], dtype=np.int32),
  }
  return supervised.supervised(
    name,
    module,
    lambda batch: (batch['images'], batch['labels']),
    train=data,
    test={field: x[:1] for field, x in data.items()},
    labels=data['labels'],
  )
