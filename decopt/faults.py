"""Links that lose messages, and workers that are away for a while.

A fault model draws for each round which messages arrive and which workers take
part. The draw follows from a seed and the round alone and is the same on all
workers, so that both ends of a link know of a loss without a message about it.
It is the same in every layout and on every machine. Chance with a memory,
bursts and absences, lives in a `decopt.Shared` state of the operator, and so in
checkpoints.

What becomes of the weight of a lost message is up to the operator
(`decopt.reweighting`). The message itself is sent, and lost: `decopt.traffic`
counts it.
"""

import numbers
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

# Draws for different purposes with one seed are independent: what is drawn for.
_LOSS, _LINK, _WORKER = range(3)


class Draw(NamedTuple):
  """What goes wrong in one round.

  Attributes:
    delivered: bool `[workers, workers]`; `delivered[i, j]` says whether what
      worker `j` sends to worker `i` arrives. Where both directions of a link
      fail together, the entry with `i > j` decides for both.
    active: bool `[workers]`; the others neither send nor receive.
  """

  delivered: jax.Array
  active: jax.Array

  def arrivals(self, *, directed: bool) -> jax.Array:
    """Says which messages arrive.

    Args:
      directed: whether the directions of a link fail independently.

    Returns:
      bool `[workers, workers]`, receivers by senders.
    """
    delivered = self.delivered
    if not directed:
      lower = jnp.tril(delivered)
      delivered = lower | lower.T
    return delivered & self.active[:, None] & self.active[None]


class Faults(NamedTuple):
  """A fault model, such as `link_drops`; write your own in the same form.

  Attributes:
    init: `init(workers) -> state`, arrays that are the same on all workers.
    draw: `draw(state, step, workers) -> (Draw, state)`. `step` is the round, an
      int32 scalar that counts from 0. Whatever else it depends on must be
      constant and equal on all workers.
  """

  init: Callable[[int], Any]
  draw: Callable[[Any, jax.Array, int], tuple[Draw, Any]]


def link_drops(probability: float, *, seed: int = 0) -> Faults:
  """Each link fails with the same probability in each round, on its own.

  Args:
    probability: that a message is lost, from 0 to 1.
    seed: of the draws.

  Raises:
    TypeError, ValueError: for a probability that is none.

  Example:
    >>> operator = decopt.gossip(decopt.ring(8), faults=decopt.link_drops(0.1))
  """
  _check('link_drops', probability=probability)

  def draw(state, step, workers):
    lost = _uniform(seed, _LOSS, step, (workers, workers)) < probability
    return Draw(~lost, jnp.ones(workers, bool)), state

  return Faults(lambda workers: (), draw)


def link_bursts(
  fail: float,
  recover: float,
  *,
  good_loss: float = 0.0,
  bad_loss: float = 1.0,
  seed: int = 0,
) -> Faults:
  r"""Links fail for a while and recover: the model of Gilbert and Elliott.

  Each link is a Markov chain of its own with a good and a bad state, and all
  are good at first. At the start of a round a good link turns bad with
  probability :math:`p`, ``fail``, and a bad one good with :math:`r`,
  ``recover``. Then it loses the message with a probability that depends on its
  state. Bad spells last :math:`1 / r` rounds on average, and in the long run
  a link is bad in :math:`p / (p + r)` of them. With :math:`r = 1 - p` the
  rounds are independent, as in ``link_drops(p)``.

  Args:
    fail: :math:`p`, from 0 to 1.
    recover: :math:`r`, from 0 to 1; 0 for links that fail for ever.
    good_loss: probability of a loss on a good link.
    bad_loss: probability of a loss on a bad link.
    seed: of the draws.

  Raises:
    TypeError, ValueError: for a probability that is none.

  Example:
    >>> a_fifth_in_spells_of_ten = decopt.link_bursts(0.025, 0.1)

  References:
    Elliott, Estimates of error rates for codes on burst-noise channels, 1963.
  """
  _check(
    'link_bursts',
    fail=fail,
    recover=recover,
    good_loss=good_loss,
    bad_loss=bad_loss,
  )

  def init(workers):
    return jnp.zeros((workers, workers), bool)

  def draw(bad, step, workers):
    turn = _uniform(seed, _LINK, step, (workers, workers))
    bad = jnp.where(bad, turn >= recover, turn < fail)
    lost = bad
    if (good_loss, bad_loss) != (0, 1):
      loss = _uniform(seed, _LOSS, step, (workers, workers))
      lost = jnp.where(bad, loss < bad_loss, loss < good_loss)
    return Draw(~lost, jnp.ones(workers, bool)), bad

  return Faults(init, draw)


def inactive_workers(leave: float, rejoin: float, *, seed: int = 0) -> Faults:
  r"""Workers go away for a while, and come back with what they had.

  Each worker is a Markov chain of its own, and all are active at first. At the
  start of a round an active worker leaves with probability :math:`p`,
  ``leave``, and one that is away comes back with :math:`r`, ``rejoin``: it
  stays away for :math:`1 / r` rounds on average, and in the long run for
  :math:`p / (p + r)` of them. Nothing is sent to or heard from it meanwhile.
  To stop its training too, put `decopt.while_active` around the optimizer.

  Args:
    leave: :math:`p`, from 0 to 1.
    rejoin: :math:`r`, from 0 to 1; 0 for workers that leave for ever.
    seed: of the draws.

  Raises:
    TypeError, ValueError: for a probability that is none.

  Example:
    >>> faults = decopt.inactive_workers(leave=0.01, rejoin=0.1)
    >>> optimizer = decopt.dsgd(
    ...   decopt.while_active(optax.sgd(0.1), faults),
    ...   decopt.ring(8),
    ...   faults=faults,
    ... )
  """
  _check('inactive_workers', leave=leave, rejoin=rejoin)

  def init(workers):
    return jnp.zeros(workers, bool)

  def draw(away, step, workers):
    turn = _uniform(seed, _WORKER, step, (workers,))
    away = jnp.where(away, turn >= rejoin, turn < leave)
    return Draw(jnp.ones((workers, workers), bool), ~away), away

  return Faults(init, draw)


def combined(*faults: Faults) -> Faults:
  """Several faults at once: what any of them loses is lost.

  Args:
    *faults: fault models; those of one kind need seeds of their own, or they
      lose the same messages.

  Raises:
    TypeError: for what is no fault model.

  Example:
    >>> faults = decopt.combined(
    ...   decopt.link_drops(0.05), decopt.inactive_workers(0.01, 0.1)
    ... )
  """

  for fault in faults:
    check('combined', fault)

  def init(workers):
    return tuple(fault.init(workers) for fault in faults)

  def draw(states, step, workers):
    drawn = [
      fault.draw(state, step, workers)
      for fault, state in zip(faults, states, strict=True)
    ]
    total = Draw(jnp.ones((workers, workers), bool), jnp.ones(workers, bool))
    for one, _ in drawn:
      total = jax.tree.map(jnp.logical_and, total, one)
    return total, tuple(state for _, state in drawn)

  return Faults(init, draw)


def _uniform(seed, purpose, step, shape) -> jax.Array:
  """Draws from [0, 1), the same whatever the settings of jax are."""
  key = jax.random.key(seed, impl='threefry2x32')
  key = jax.random.fold_in(jax.random.fold_in(key, purpose), step)
  return jax.random.uniform(key, shape, jnp.float32)


def check(function: str, faults) -> None:
  """Raises if a function got something else than a fault model."""
  if not isinstance(faults, Faults):
    raise TypeError(
      f'{function} got {faults!r} as a fault model; make one, such as '
      'decopt.link_drops(0.1), and combine several with decopt.combined.'
    )


def _check(function: str, **probabilities) -> None:
  for name, value in probabilities.items():
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
      raise TypeError(
        f'{function} got {name}={value!r} of type {type(value).__name__}; it '
        'must be a number from 0 to 1.'
      )
    if not 0 <= value <= 1:
      raise ValueError(
        f'{function} got {name}={value}; it is a probability, from 0 to 1.'
      )
