"""When workers meet."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from tests import helpers
from tests import lossy
from tests import oracle

STEPS = 20
LAYOUTS = {
  name: helpers.LAYOUTS[name] for name in ('simulation', 'unrolled', 'mesh')
}


def _meetings(transform, execute=decopt.spmd):
  """The steps, from 1, after which all workers hold the same."""
  step = execute(
    lambda grads, state, params: transform.update(grads, state, params)
  )
  grads = jnp.arange(8.0)  # each worker goes its own way
  params = jnp.zeros(8)
  state = execute(transform.init)(params)
  met = []
  for t in range(1, STEPS + 1):
    updates, state = step(grads, state, params)
    params = jax.block_until_ready(params + updates)
    if np.ptp(params) < 1e-5:
      met.append(t)
  return met


def _runs(transform):
  """The steps, from 1, at which the program communicates."""
  sent = decopt.traffic(transform, jnp.zeros(()), 8, steps=STEPS)
  [exchange] = sent.exchanges
  return (np.flatnonzero(exchange.runs) + 1).tolist()


class MeetingsTest(parameterized.TestCase):
  @parameterized.named_parameters(
    helpers.cases({'1': 1, '2': 2, '5': 5, '7': 7}, LAYOUTS)
  )
  def test_b24_workers_meet_after_h_2h_and_so_on_and_only_then(
    self, period, execute
  ):
    # A published implementation had a first round of H + 1 steps.
    transform = decopt.local_sgd(optax.sgd(0.1), period)
    expected = list(range(period, STEPS + 1, period))
    self.assertEqual(_meetings(transform, execute), expected)
    self.assertEqual(_runs(transform), expected)

  @parameterized.named_parameters(helpers.cases(LAYOUTS))
  def test_the_period_may_be_a_function_of_the_step(self, execute):
    transform = decopt.local_sgd(optax.sgd(0.1), lambda step: 1 + step // 4)
    expected = [1, 2, 3, 4, 6, 8, 11, 14, 18]
    self.assertEqual(_meetings(transform, execute), expected)
    self.assertEqual(_runs(transform), expected)

  @parameterized.named_parameters(helpers.cases(LAYOUTS))
  def test_the_period_may_grow_as_the_learning_rate_falls(self, execute):
    # The quadratic synchronization rule: rounds of 1 at 0.4, of 4 at 0.2 and
    # of 16 at 0.1. The round that begins after 11 steps would end at 27.
    def rate(t):
      return jnp.where(t < 3, 0.4, jnp.where(t < 11, 0.2, 0.1))

    transform = decopt.local_sgd(
      optax.sgd(rate), lambda eta: (0.4 / eta) ** 2, schedule=rate
    )
    expected = [1, 2, 3, 7, 11]
    self.assertEqual(_meetings(transform, execute), expected)
    self.assertEqual(_runs(transform), expected)

  @parameterized.named_parameters(
    ('below_one', lambda step: 0.5, list(range(1, STEPS + 1))),
    ('negative', lambda step: step - 3, [1, 2, 3, 4, 5, 7, 11, 19]),
    ('infinite', lambda step: jnp.where(step < 2, 1, jnp.inf), [1, 2]),
  )
  def test_strange_periods_are_bounded(self, period, expected):
    transform = decopt.local_sgd(optax.sgd(0.1), period)
    self.assertEqual(_meetings(transform), expected)

  def test_a_changing_graph_moves_on_once_a_meeting(self):
    transform = decopt.decentralized_local_sgd(
      optax.sgd(0.1), decopt.one_peer_exponential(8), 2
    )
    sent = decopt.traffic(transform, jnp.zeros(()), 8, steps=12)
    steps = [(np.flatnonzero(e.runs) + 1).tolist() for e in sent.exchanges]
    self.assertEqual(steps, [[2, 8], [4, 10], [6, 12]])

  def test_what_is_lost_is_lost_in_meetings(self):
    problem = helpers.LeastSquares()
    transform = decopt.decentralized_local_sgd(
      optax.sgd(0.1), lossy.changing(8), 3, faults=lossy.FAULTS
    )
    with jax.enable_x64(True):
      x = helpers.run(decopt.spmd, {'it': transform}, problem)['it']
    expected = oracle.decentralized_local_sgd(
      problem.start,
      problem.gradient,
      oracle.sgd(0.1),
      steps=helpers.STEPS,
      weights=lossy.symmetric(8),
      period=3,
    )
    np.testing.assert_allclose(x, expected, rtol=1e-10)


if __name__ == '__main__':
  absltest.main()
