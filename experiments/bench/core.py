"""The core suite: what a step costs through decopt and by hand, and start-up.

The programs of decopt are those that ``experiments.train`` runs: an optax
chain, `experiments.step`, a gradient mapping. The hand-written ones know
nothing of any of it (`references`, `mesh_references`, `models`). Both get the
same parameters, examples and order of examples.

Rows called ``_auto`` leave the gradient mapping to the rule behind
``gradient_mapping='auto'``, which repeats the program for each worker where
that compiles in reasonable time. All others say how they map.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
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
  """Returns the rows of the suite."""
  mlp = functools.partial(gossip, mlp_workload, models.mlp_loss)
  case = cases_lib.Case
  return [
    case('mlp16', 1.05, '16 workers, vmap', lambda: mlp(16)),
    case('mlp16_auto', 0.92, '16 workers', lambda: mlp(16, mapping='auto')),
    case('mlp64', 1.05, '64 workers, vmap', lambda: mlp(64)),
    case('mlp64_auto', 0.92, '64 workers', lambda: mlp(64, mapping='auto')),
    case('transformer8', 1.05, 'bytes, 8 workers', transformer),
    case('convnet8', 1.05, '32x32 images, 8 workers', convnet),
    case('mlp2_mesh', 1.05, 'a mesh of 2 devices', mesh, devices=2),
    case('all_reduce8', 1.2, 'one flat batch of 8 x 32', all_reduce),
    case('startup', 1.3, 'process start to first step', startup.contest, 4),
  ]


def gossip(
  make_workload: Callable[[], workloads.Workload],
  loss: references.Loss,
  workers: int,
  *,
  mapping: str = 'vmap',
  forms: Mapping[str, Callable[..., Any]] = STACKED,
  batch: int = BATCH,
  steps: int | None = None,
) -> cases_lib.Contest:
  """Gossip SGD on a ring, simulated: decopt against hand-written forms.

  Args:
    make_workload: gives data, parameters, and the loss that decopt trains.
    loss: the same by hand.
    workers: at least 3.
    mapping: gradient mapping of decopt's program.
    forms: hand-written programs, see `references`.
    batch: examples of a worker in a step.
    steps: in one dispatch; by default about as many as take 0.1 seconds.
  """
  workload = make_workload()
  steps = steps or max(256 // workers, 1)
  optimizer = decopt.diffusion(optax.sgd(RATE), decopt.ring(workers))
  data, indices = examples(workload, workers, steps, batch)
  return cases_lib.Contest(
    program(workload, optimizer, workers, data, indices, mapping=mapping),
    hand_written(forms, loss, workload, workers, data, indices),
    'worker-steps/s',
    workers * steps,
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
  workload = mlp_workload()
  optimizer = decopt.diffusion(optax.sgd(RATE), decopt.ring(workers))
  data, indices = examples(workload, workers, steps, BATCH)
  data = mesh_references.place(data, stacked=False)
  indices = mesh_references.place(indices, stacked=True)
  forms = {
    'flat': mesh_references.flat,
    'one message': mesh_references.one_message,
  }
  return cases_lib.Contest(
    program(
      workload,
      optimizer,
      workers,
      data,
      indices,
      mesh=decopt.make_mesh(workers),
    ),
    hand_written(forms, models.mlp_loss, workload, workers, data, indices),
    'worker-steps/s',
    workers * steps,
  )


def all_reduce(workers: int = 8, steps: int = 32) -> cases_lib.Contest:
  """Data parallel: all workers stay equal, so their batches are one batch."""
  workload = mlp_workload()
  optimizer = decopt.all_reduce_sgd(optax.sgd(RATE))
  data, indices = examples(workload, workers, steps, BATCH)
  ours = program(workload, optimizer, workers, data, indices, mapping='auto')
  forms = {'one batch': references.one_batch}
  return cases_lib.Contest(
    lambda: ours().mean(axis=0),
    hand_written(forms, models.mlp_loss, workload, workers, data, indices),
    'worker-steps/s',
    workers * steps,
  )


def program(
  workload: workloads.Workload,
  optimizer: optax.GradientTransformation,
  workers: int,
  data: dict[str, jax.Array],
  indices: jax.Array,
  *,
  mesh: jax.sharding.Mesh | None = None,
  mapping: str = 'vmap',
) -> Callable[[], np.ndarray]:
  """Makes decopt's side: a program of `experiments.step`, and its state."""
  state = step_lib.init_state(workload, optimizer, workers=workers, mesh=mesh)
  built = step_lib.make_program(
    workload, optimizer, workers=workers, mesh=mesh, mapping=mapping
  )
  return cases_lib.looped(built.run, built.enter(state), data, indices, 0)


def hand_written(
  forms: Mapping[str, Callable[..., Any]],
  loss: references.Loss,
  workload: workloads.Workload,
  workers: int,
  data: dict[str, jax.Array],
  indices: jax.Array,
) -> dict[str, Callable[[], np.ndarray]]:
  """Makes the other side: each form with the workload's own parameters."""
  params, _ = workload.init(jax.random.key(0))
  programs = {}
  for name, form in forms.items():
    run, state = form(loss, params, workers, RATE)
    programs[name] = cases_lib.looped(run, state, data, indices)
  return programs


def examples(
  workload: workloads.Workload, workers: int, steps: int, batch: int
) -> tuple[dict[str, jax.Array], jax.Array]:
  """Returns the data, and indices ``[workers, steps, batch]`` into it."""
  random = np.random.default_rng(0)
  shape = workers, steps, batch
  indices = random.integers(workload.examples, size=shape, dtype=np.int32)
  return jax.device_put(workload.train), jnp.asarray(indices)


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
