"""Graphs and faults for the tables, and the matrices of rounds with losses."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import decopt
from tests import oracle

STEPS = 50

#: Messages are lost alone and in bursts, and workers are away.
FAULTS = decopt.combined(
  decopt.link_drops(0.2, seed=1),
  decopt.link_bursts(0.1, 0.4, good_loss=0.05, bad_loss=0.9, seed=2),
  decopt.inactive_workers(0.1, 0.5, seed=3),
)


def arrivals(faults, workers, *, directed, steps=STEPS):
  """bool [steps, workers, workers]: which messages arrive in each round."""
  return np.asarray(_arrivals(faults, workers, directed, steps))


@functools.partial(jax.jit, static_argnums=range(4))
def _arrivals(faults, workers, directed, steps):
  def body(state, step):
    draw, state = faults.draw(state, step, workers)
    return state, draw.arrivals(directed=directed)

  numbers = jnp.arange(steps, dtype=jnp.int32)
  return jax.lax.scan(body, faults.init(workers), numbers)[1]


@functools.cache
def weights(topology, faults, rule, *, directed, steps=STEPS):
  """[steps, workers, workers]: the weights of each round with its losses.

  Args:
    topology: before the losses.
    faults: a fault model.
    rule: of `tests.oracle`.
    directed: whether the directions of a link fail on their own.
    steps: how many rounds.
  """
  arrived = arrivals(faults, topology.workers, directed=directed, steps=steps)
  return np.stack(
    [
      rule(topology.weights[t % topology.period], arrived[t])
      for t in range(steps)
    ]
  )


def symmetric(workers, faults=FAULTS):
  """The rounds of gossip with faults on `changing`."""
  return weights(
    changing(workers), faults, oracle.kept_by_senders, directed=False
  )


def one_way(workers, faults=FAULTS):
  """The rounds of push-sum with faults on `changing_digraph`."""
  return weights(
    changing_digraph(workers), faults, oracle.kept_by_senders, directed=True
  )


def changing(workers):
  """A star and a ring in turn: symmetric, irregular, and it changes."""
  star, ring = decopt.star(workers), decopt.ring(workers)
  return decopt.Topology(
    np.concatenate([star.weights, ring.weights]), 'star and ring'
  )


def digraph(workers):
  """One-way links, some workers heard by more than others.

  Worker 0 sends to all, the others to the next one, and the even ones to the
  one after that; each keeps as much as it sends to one. Columns sum to 1.
  """
  links = np.eye(workers, dtype=bool)
  links[:, 0] = True
  for sender in range(workers):
    links[(sender + 1) % workers, sender] = True
    if sender % 2 == 0:
      links[(sender + 2) % workers, sender] = True
  return decopt.Topology(links / links.sum(axis=0), 'one-way')


def changing_digraph(workers):
  """The links of `digraph` one round, some links back the other."""
  back = np.eye(workers)
  if workers > 2:
    back[0, 1], back[1, 1] = 0.25, 0.75
    back[2, 1], back[1, 1] = 0.25, 0.5
  return decopt.Topology(
    np.stack([digraph(workers).weights[0], back]), 'one-way in turn'
  )
