"""What the tests of the library share: layouts, a toy problem, the tables.

To test a new algorithm, write its recursion in `tests/oracle.py` and add a row
to `ALGORITHMS`; a new operator is a row of `OPERATORS`. Every check of
`tests/algorithms` and `tests/operators` then holds for it, in every layout.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import networkx
import numpy as np
import optax

import decopt
from tests import least_squares
from tests import lossy
from tests import oracle

WORKERS = 8
STEPS = 50

LeastSquares = least_squares.LeastSquares


def on_mesh(devices: int, machines: int | None = None) -> Callable:
  """Executes worker functions on a mesh, which is made when it is needed."""

  def execute(worker_fn, **options):
    mesh = decopt.make_mesh(devices, machines=machines)
    return decopt.spmd(worker_fn, mesh=mesh, **options)

  return execute


def pmap(worker_fn):
  """Executes a worker function as jax does without our help."""
  return jax.pmap(worker_fn, axis_name=decopt.WORKERS)


#: Name -> how a worker function becomes a function of stacked arrays. Packed
#: layouts are called after devices times workers on each, and a mesh with two
#: axes after machines times devices of each.
LAYOUTS = {
  'simulation': decopt.spmd,
  'unrolled': functools.partial(decopt.spmd, mapping='unrolled'),
  'mesh': on_mesh(8),
  'mesh_2x4': on_mesh(8, machines=2),
  'packed_4x2': on_mesh(4),
  'packed_2x4': on_mesh(2),
  'packed_1x8': on_mesh(1),
}

#: The layouts of `decopt.spmd`, and the way that does not know the library.
EXECUTORS = {**LAYOUTS, 'pmap': pmap}


def cases(*tables):
  """All combinations of the rows of tables, for `named_parameters`."""
  for rows in itertools.product(*(table.items() for table in tables)):
    name = '_'.join(key for key, _ in rows)
    yield (f'_{name}', *(value for _, value in rows))


def loss(params, batch):
  """Loss of one worker on its batch."""
  features, targets = batch
  residual = features @ params['kernel'] + params['bias'] - targets
  return jnp.mean(jnp.square(residual)) / 2


def worker_step(transform):
  """The optax loop's body, for one worker."""

  def step(params, state, batch):
    grads = jax.grad(loss)(params, batch)
    updates, state = transform.update(grads, state, params)
    return optax.apply_updates(params, updates), state

  return step


def run(execute, transforms, problem, *, steps=STEPS, start=None):
  """Trains with each of some transformations, in one program.

  Args:
    execute: a value of `EXECUTORS`.
    transforms: name -> transformation.
    problem: a `LeastSquares`.
    steps: how many.
    start: flat parameters [workers, d]; default those of the problem.

  Returns:
    Name -> flat parameters at the end.
  """

  def init(params):
    return {name: tx.init(params) for name, tx in transforms.items()}

  def step(params, states, batch):
    after = {
      name: worker_step(tx)(params[name], states[name], batch)
      for name, tx in transforms.items()
    }
    params = {name: params for name, (params, _) in after.items()}
    states = {name: state for name, (_, state) in after.items()}
    return params, states

  params = problem.params(start)
  states, step = execute(init)(params), execute(step)
  params = dict.fromkeys(transforms, params)
  throttle = decopt.Throttle()
  for t in range(steps):
    params, states = step(params, states, problem.batch(t))
    throttle.admit(params)
  return {name: problem.flat(params[name]) for name in transforms}


@dataclasses.dataclass(frozen=True)
class Optimizer:
  """An optimizer of optax with the same one in numpy.

  Attributes:
    optax: the optimizer.
    oracle: () -> `adapt` as in `tests.oracle`.
  """

  optax: optax.GradientTransformation
  oracle: Callable


OPTIMIZERS = {
  'sgd': Optimizer(optax.sgd(0.1), lambda: oracle.sgd(0.1)),
  'momentum': Optimizer(
    optax.sgd(0.05, momentum=0.9), lambda: oracle.momentum(0.05, 0.9)
  ),
  'adam': Optimizer(optax.adam(0.1), lambda: oracle.adam(0.1)),
}


def irregular(workers: int) -> decopt.Topology:
  """A wheel: not regular, and its messages need chains to be permutations."""
  return decopt.metropolis(networkx.wheel_graph(workers))


def biased(workers: int) -> decopt.Topology:
  """All hear worker 0: those who agree stay so, but the mean moves."""
  hear_first = np.eye(workers)[[0] * workers]
  return decopt.Topology((np.eye(workers) + hear_first) / 2, 'all hear one')


@dataclasses.dataclass(frozen=True)
class Algorithm:
  """A row of `ALGORITHMS`.

  Attributes:
    build: (optax optimizer, workers) -> transformation.
    oracle: (x, gradient, adapt, *, steps) -> x, as in `tests.oracle`.
    optimizers: names of those `OPTIMIZERS` for which the oracle is exact.
    common_start: whether workers must start with the same parameters.
    keeps_mean: whether the mean over workers moves by that of the updates.
    keeps_equal: whether workers with the same data and parameters stay equal.
  """

  build: Callable[[Any, int], optax.GradientTransformationExtraArgs]
  oracle: Callable
  optimizers: tuple[str, ...] = tuple(OPTIMIZERS)
  common_start: bool = False
  keeps_mean: bool = True
  keeps_equal: bool = True

  def start(self, problem):
    """Flat parameters to start from."""
    x = problem.start
    return np.broadcast_to(x[0], x.shape) if self.common_start else x


def _on(graph, recursion, **settings):
  """A recursion of `tests.oracle` with the weights of ``graph(workers)``."""
  return _with(lambda workers: graph(workers).weights, recursion, **settings)


def _with(rounds, recursion, **settings):
  """A recursion of `tests.oracle` with the weights ``rounds(workers)``."""

  def run(x, gradient, adapt, *, steps):
    weights = rounds(len(x))
    return recursion(
      x, gradient, adapt, steps=steps, weights=weights, **settings
    )

  return run


ALGORITHMS = {
  'all_reduce_sgd': Algorithm(
    lambda optimizer, workers: decopt.all_reduce_sgd(optimizer),
    oracle.all_reduce_sgd,
    common_start=True,
  ),
  'dsgd': Algorithm(
    lambda optimizer, workers: decopt.dsgd(optimizer, decopt.ring(workers)),
    _on(decopt.ring, oracle.dsgd),
  ),
  'dsgd_changing_graph': Algorithm(
    lambda optimizer, workers: decopt.dsgd(
      optimizer, decopt.one_peer_exponential(workers)
    ),
    _on(decopt.one_peer_exponential, oracle.dsgd),
  ),
  'diffusion': Algorithm(
    lambda optimizer, workers: decopt.diffusion(optimizer, irregular(workers)),
    _on(irregular, oracle.diffusion),
  ),
  'local_sgd': Algorithm(
    lambda optimizer, workers: decopt.local_sgd(optimizer, 3),
    functools.partial(oracle.local_sgd, period=3),
  ),
  'decentralized_local_sgd': Algorithm(
    lambda optimizer, workers: decopt.decentralized_local_sgd(
      optimizer, decopt.exponential(workers), 4
    ),
    _on(decopt.exponential, oracle.decentralized_local_sgd, period=4),
  ),
  'decentralized_local_sgd_changing_graph': Algorithm(
    lambda optimizer, workers: decopt.decentralized_local_sgd(
      optimizer, decopt.one_peer_exponential(workers), 2
    ),
    _on(decopt.one_peer_exponential, oracle.decentralized_local_sgd, period=2),
  ),
  'dsgd_faults': Algorithm(
    lambda optimizer, workers: decopt.dsgd(
      optimizer, lossy.changing(workers), faults=lossy.FAULTS
    ),
    _with(lossy.symmetric, oracle.dsgd),
  ),
  'diffusion_delayed': Algorithm(
    lambda optimizer, workers: optax.chain(
      optimizer, decopt.mix_iterates(decopt.gossip(irregular(workers), delay=2))
    ),
    lambda x, *args, **kwargs: oracle.adapt_then_combine(
      x,
      *args,
      operator=oracle.delayed_gossip(irregular(len(x)).weights, 2),
      **kwargs,
    ),
    keeps_mean=False,
    keeps_equal=False,
  ),
  'sgp': Algorithm(
    lambda optimizer, workers: decopt.sgp(optimizer, lossy.digraph(workers)),
    _on(lossy.digraph, oracle.sgp),
    keeps_mean=False,
    keeps_equal=False,
  ),
  'sgp_faults': Algorithm(
    lambda optimizer, workers: decopt.sgp(
      optimizer, lossy.changing_digraph(workers), faults=lossy.FAULTS
    ),
    _with(lossy.one_way, oracle.sgp),
    keeps_mean=False,
    keeps_equal=False,
  ),
}


@dataclasses.dataclass(frozen=True)
class OperatorRow:
  """A row of `OPERATORS`.

  Attributes:
    build: workers -> operator.
    oracle: (x, t) -> x, application t = 0, 1, ... to flat x [workers, d].
    keeps_mean: whether the mean over workers is preserved.
    keeps_consensus: whether workers that agree stay as they are.
  """

  build: Callable[[int], decopt.Operator]
  oracle: Callable
  keeps_mean: bool = True
  keeps_consensus: bool = True


def per_machine(workers: int) -> int:
  """Workers of a machine in the row of `hierarchical_gossip`."""
  return 2 if workers % 2 == 0 else 1


def _gossip(graph, **properties):
  """The row of `gossip` along ``graph(workers)``."""
  return OperatorRow(
    lambda workers: decopt.gossip(graph(workers)),
    lambda x, t: oracle.mix(x, graph(len(x)).weights, t),
    **properties,
  )


def _delayed(rounds, delay):
  """The recursion of delayed gossip with the weights ``rounds(workers)``."""
  recursions = {}

  def apply(x, t):
    workers = len(x)
    if workers not in recursions:
      recursions[workers] = oracle.delayed_gossip(rounds(workers), delay)
    return recursions[workers](x, t)

  return apply


def _renormalized(workers):
  return lossy.weights(
    decopt.one_peer_exponential(workers),
    lossy.FAULTS,
    oracle.renormalized,
    directed=True,
  )


_RING = _gossip(decopt.ring)
_CHANGING = _gossip(decopt.one_peer_exponential)
_MEAN = OperatorRow(
  lambda workers: decopt.all_reduce(), lambda x, t: oracle.all_reduce(x)
)

OPERATORS = {
  'all_reduce': _MEAN,
  'gossip_ring': _RING,
  'gossip_complete': _gossip(decopt.complete),
  'gossip_exponential': _gossip(decopt.exponential),
  'gossip_irregular': _gossip(irregular),
  'gossip_changing': _CHANGING,
  'hierarchical_gossip': OperatorRow(
    lambda workers: decopt.hierarchical_gossip(
      decopt.one_peer_exponential(workers // per_machine(workers)),
      per_machine(workers),
    ),
    lambda x, t: oracle.hierarchical_gossip(
      x,
      decopt.one_peer_exponential(len(x) // per_machine(len(x))).weights,
      t,
    ),
  ),
  'gossip_biased': _gossip(biased, keeps_mean=False),
  'gossip_faults': OperatorRow(
    lambda workers: decopt.gossip(lossy.changing(workers), faults=lossy.FAULTS),
    lambda x, t: oracle.mix(x, lossy.symmetric(len(x)), t),
  ),
  'gossip_delayed': OperatorRow(
    lambda workers: decopt.gossip(irregular(workers), delay=2),
    _delayed(lambda workers: irregular(workers).weights, 2),
    keeps_mean=False,
  ),
  'gossip_delayed_faults': OperatorRow(
    lambda workers: decopt.gossip(
      lossy.changing(workers), delay=1, faults=lossy.FAULTS
    ),
    _delayed(lossy.symmetric, 1),
    keeps_mean=False,
  ),
  'renormalized_gossip': OperatorRow(
    lambda workers: decopt.renormalized_gossip(
      decopt.one_peer_exponential(workers), lossy.FAULTS
    ),
    lambda x, t: oracle.mix(x, _renormalized(len(x)), t),
    keeps_mean=False,
  ),
  'every': OperatorRow(
    lambda workers: decopt.every(_CHANGING.build(workers), 2),
    oracle.every(_CHANGING.oracle, 2),
  ),
  'damped': OperatorRow(
    lambda workers: decopt.damped(_RING.build(workers), 0.25),
    oracle.damped(_RING.oracle, lambda t: 0.25),
  ),
  'damped_by_schedule': OperatorRow(
    lambda workers: decopt.damped(
      _MEAN.build(workers), lambda t: 1 / (1 + t % 2)
    ),
    oracle.damped(_MEAN.oracle, lambda t: 1 / (1 + t % 2)),
  ),
  'repeated': OperatorRow(
    lambda workers: decopt.repeated(_CHANGING.build(workers), 2),
    oracle.repeated(_CHANGING.oracle, 2),
  ),
}
