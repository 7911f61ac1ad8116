"""Identities of `every`, `damped` and `repeated`, and what they refuse."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from tests import helpers

X = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)


def _apply(operator, times=4):
  @decopt.spmd
  def run(x):
    state = operator.init(x)
    for _ in range(times):
      x, state = operator.update(x, state)
    return x

  return run(X)


def _assert_same(first, second):
  np.testing.assert_allclose(first, second, rtol=1e-6, atol=1e-7)


class IdentitiesTest(parameterized.TestCase):
  """T stands for each operator of the table."""

  @parameterized.named_parameters(helpers.cases(helpers.OPERATORS))
  def test_every_first_step_is_the_operator(self, row):
    operator = row.build(8)
    _assert_same(_apply(decopt.every(operator, 1)), _apply(operator))

  @parameterized.named_parameters(helpers.cases(helpers.OPERATORS))
  def test_damped_by_one_is_the_operator(self, row):
    operator = row.build(8)
    _assert_same(_apply(decopt.damped(operator, 1)), _apply(operator))
    scheduled = decopt.damped(operator, optax.constant_schedule(1.0))
    _assert_same(_apply(scheduled), _apply(operator))

  @parameterized.named_parameters(helpers.cases(helpers.OPERATORS))
  def test_damped_by_zero_does_nothing(self, row):
    result = _apply(decopt.damped(row.build(8), 0))
    np.testing.assert_array_equal(result, X)

  @parameterized.named_parameters(helpers.cases(helpers.OPERATORS))
  def test_repeated_once_is_the_operator(self, row):
    operator = row.build(8)
    _assert_same(_apply(decopt.repeated(operator, 1)), _apply(operator))

  @parameterized.named_parameters(helpers.cases(helpers.OPERATORS))
  def test_repeated_twice_is_the_operator_twice(self, row):
    operator = row.build(8)
    twice = decopt.repeated(operator, 2)
    _assert_same(_apply(twice, times=2), _apply(operator, times=4))

  def test_a_whole_period_of_one_peer_graphs_is_the_mean(self):
    period = decopt.repeated(decopt.gossip(decopt.one_peer_exponential(8)), 3)
    _assert_same(_apply(period, times=1), _apply(decopt.all_reduce()))


class EveryTest(parameterized.TestCase):
  def test_nothing_changes_between_two_actions(self):
    operator = decopt.every(decopt.all_reduce(), 3)
    np.testing.assert_array_equal(_apply(operator, times=2), X)
    _assert_same(_apply(operator, times=3), _apply(decopt.all_reduce()))

  def test_the_inner_state_moves_only_when_the_operator_acts(self):
    operator = decopt.every(decopt.gossip(decopt.one_peer_exponential(8)), 2)
    init, update = decopt.spmd(operator.init), decopt.spmd(operator.update)
    x, state, rounds = X, init(X), []
    for _ in range(5):
      x, state = update(x, state)
      rounds.append(int(state.inner.step.count))
    self.assertEqual(rounds, [0, 1, 1, 2, 2])

  def test_a_period_that_is_not_a_number_does_not_silence_workers(self):
    operator = decopt.every(decopt.all_reduce(), lambda step: step * jnp.nan)
    _assert_same(_apply(operator, times=2), _apply(decopt.all_reduce()))

  @parameterized.named_parameters(
    ('zero', 0, ValueError, 'period=0; it must be at least 1'),
    ('negative', -3, ValueError, 'period=-3'),
    ('fraction', 2.5, TypeError, r'period=2\.5 of type float.*an int'),
    ('bool', True, TypeError, 'period=True of type bool'),
    ('text', '3', TypeError, "period='3' of type str"),
  )
  def test_periods_that_are_none_are_refused(self, period, error, message):
    with self.assertRaisesRegex(error, f'every got {message}'):
      decopt.every(decopt.all_reduce(), period)
    with self.assertRaisesRegex(error, message):
      decopt.local_sgd(optax.sgd(0.1), period)

  def test_a_schedule_needs_a_function_of_its_value(self):
    with self.assertRaisesRegex(TypeError, 'period=4 and a schedule.*lambda'):
      decopt.every(
        decopt.all_reduce(), 4, schedule=optax.constant_schedule(0.1)
      )

  def test_numpy_integers_are_integers(self):
    operator = decopt.every(decopt.all_reduce(), np.int64(2))
    np.testing.assert_array_equal(_apply(operator, times=1), X)


class DampedTest(parameterized.TestCase):
  @parameterized.parameters(-0.1, 1.5, np.float32(2), float('nan'))
  def test_rates_outside_of_the_unit_interval_are_refused(self, rate):
    with self.assertRaisesRegex(ValueError, f'rate={rate}.*between 0 and 1'):
      decopt.damped(decopt.all_reduce(), rate)

  def test_the_rate_may_be_injected(self):
    # A schedule that belongs to the optimizer, not to the operator.
    def build(rate):
      return decopt.damped(decopt.all_reduce(), rate)

    schedule = optax.piecewise_constant_schedule(0.25, {2: 2.0})
    injected = optax.inject_hyperparams(build)(rate=schedule)
    _assert_same(
      _apply(injected), _apply(decopt.damped(decopt.all_reduce(), schedule))
    )

  def test_narrow_numbers_that_agree_stay_as_they_are(self):
    x = jnp.broadcast_to(jnp.asarray(X[:1], jnp.bfloat16), X.shape)
    operator = decopt.damped(decopt.all_reduce(), 0.3)
    result = decopt.spmd(lambda x: operator.update(x, operator.init(x))[0])(x)
    np.testing.assert_array_equal(result, x)

  def test_a_fixed_rate_needs_no_clock(self):
    state = decopt.damped(decopt.all_reduce(), 0.5).init({})
    self.assertEmpty(jax.tree.leaves(state))


class RepeatedTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('zero', 0, ValueError, 'rounds=0; it must be at least 1'),
    ('fraction', 1.0, TypeError, r'rounds=1\.0 of type float'),
  )
  def test_rounds_that_are_none_are_refused(self, rounds, error, message):
    with self.assertRaisesRegex(error, f'repeated got {message}'):
      decopt.repeated(decopt.all_reduce(), rounds)


if __name__ == '__main__':
  absltest.main()
