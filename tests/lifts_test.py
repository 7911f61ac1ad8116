"""Operators in a chain: what the next iterate is, and optax around them."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from absl.testing import absltest
from absl.testing import parameterized
from flax.training import train_state

import decopt
from tests import helpers

RATE = 0.1


def _step(transform):
  """One step of a transformation from its initial state."""

  def step(params, grads):
    updates, _ = transform.update(grads, transform.init(params), params)
    return optax.apply_updates(params, updates)

  return decopt.spmd(step)


class ChainTest(parameterized.TestCase):
  """The table of the README."""

  def setUp(self):
    super().setUp()
    rng = np.random.default_rng(0)
    self.x, self.g = rng.normal(size=(2, 8, 4))
    self.topology = helpers.irregular(8)
    self.weights = self.topology.weights[0]

  def _next(self, *chain):
    with jax.enable_x64(True):
      return _step(optax.chain(*chain))(
        jnp.asarray(self.x), jnp.asarray(self.g)
      )

  def _assert_close(self, actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-12)

  def test_the_four_orders(self):
    x, g, w = self.x, self.g, self.weights
    mix, adapt = decopt.gossip(self.topology), optax.sgd(RATE)
    for chain, expected in (
      ((mix, adapt), x - RATE * (w @ g)),
      ((adapt, mix), x + w @ (-RATE * g)),
      ((adapt, decopt.mix_params(mix)), w @ x - RATE * g),
      ((adapt, decopt.mix_iterates(mix)), w @ (x - RATE * g)),
    ):
      self._assert_close(self._next(*chain), expected)

  def test_orders_differ_where_adapting_is_not_linear(self):
    # The sign of a mean is not the mean of signs.
    x, g, w = self.x, self.g, self.weights
    mix, adapt = decopt.gossip(self.topology), optax.sign_sgd(RATE)
    self._assert_close(self._next(mix, adapt), x - RATE * np.sign(w @ g))
    self._assert_close(self._next(adapt, mix), x - RATE * (w @ np.sign(g)))
    self._assert_close(
      self._next(adapt, decopt.mix_iterates(mix)),
      w @ (x - RATE * np.sign(g)),
    )

  @parameterized.named_parameters(
    ('mix_params', decopt.mix_params), ('mix_iterates', decopt.mix_iterates)
  )
  def test_consensus_is_reached_to_one_ulp(self, lift):
    step = _step(lift(decopt.all_reduce()))
    x = np.asarray(
      step(self.x.astype(np.float32), np.zeros((8, 4), np.float32))
    )
    np.testing.assert_array_less(np.ptp(x, axis=0), 3e-7)

  @parameterized.named_parameters(
    ('mix_params', decopt.mix_params), ('mix_iterates', decopt.mix_iterates)
  )
  def test_without_parameters_there_is_advice(self, lift):
    transform = lift(decopt.all_reduce())
    x = jnp.zeros(8)
    with self.assertRaisesRegex(
      ValueError, rf'{lift.__name__}.*params=None.*update\(grads, state, params'
    ):
      decopt.spmd(lambda g: transform.update(g, transform.init(g)))(x)

  @parameterized.named_parameters(
    ('mix_params', decopt.mix_params), ('mix_iterates', decopt.mix_iterates)
  )
  def test_extra_arguments_reach_the_operator(self, lift):
    def update(tree, state, params=None, *, bonus, **extra):
      del params, extra
      return tree + bonus, state

    operator = optax.GradientTransformationExtraArgs(
      optax.identity().init, update
    )
    transform = optax.chain(optax.sgd(RATE), lift(operator))
    updates, _ = transform.update(
      jnp.zeros(2), transform.init(jnp.zeros(2)), jnp.ones(2), bonus=3.0
    )
    np.testing.assert_array_equal(updates, [3.0, 3.0])

  @parameterized.named_parameters(
    ('mix_params', decopt.mix_params), ('mix_iterates', decopt.mix_iterates)
  )
  def test_narrow_parameters_take_wide_updates(self, lift):
    transform = lift(decopt.gossip(decopt.ring(8)))
    params = jnp.ones((8, 3), jnp.bfloat16)
    result = _step(transform)(params, jnp.zeros((8, 3), jnp.float32))
    self.assertEqual(result.dtype, jnp.bfloat16)
    np.testing.assert_array_equal(result, params)


class OptaxAroundTest(parameterized.TestCase):
  """Wrappers of optax do to operators what they do to anything else."""

  def setUp(self):
    super().setUp()
    rng = np.random.default_rng(0)
    self.params = {
      'a': rng.normal(size=(8, 4)).astype(np.float32),
      'b': rng.normal(size=(8, 2, 2)).astype(np.float32),
    }
    self.zeros = jax.tree.map(np.zeros_like, self.params)
    self.topology = decopt.ring(8)

  def test_flatten_makes_one_vector_of_all_leaves(self):
    plain = decopt.mix_iterates(decopt.gossip(self.topology))
    flat = decopt.mix_iterates(optax.flatten(decopt.gossip(self.topology)))
    jax.tree.map(
      functools.partial(np.testing.assert_allclose, rtol=1e-6, atol=1e-7),
      _step(flat)(self.params, self.zeros),
      _step(plain)(self.params, self.zeros),
    )

  def test_masked_leaves_stay_local(self):
    mask = {'a': True, 'b': False}
    operator = optax.masked(decopt.gossip(self.topology), mask)
    for lift in (decopt.mix_iterates, decopt.mix_params):
      result = _step(lift(operator))(self.params, self.zeros)
      np.testing.assert_allclose(
        result['a'],
        self.topology.weights[0] @ self.params['a'],
        rtol=1e-5,
        atol=1e-6,
      )
      np.testing.assert_array_equal(result['b'], self.params['b'])

  def test_partition_gives_each_part_an_operator_of_its_own(self):
    operator = optax.partition(
      {'ring': decopt.gossip(self.topology), 'all': decopt.all_reduce()},
      {'a': 'ring', 'b': 'all'},
    )
    result = _step(decopt.mix_iterates(operator))(self.params, self.zeros)
    mean = self.params['b'].mean(axis=0)
    np.testing.assert_allclose(
      result['b'], np.broadcast_to(mean, (8, 2, 2)), rtol=1e-5, atol=1e-6
    )

  @parameterized.named_parameters(helpers.cases(helpers.LAYOUTS))
  def test_accumulation_belongs_inside(self, execute):
    # Four gradients make a step, and workers meet after each such step.
    accumulated = optax.MultiSteps(optax.sgd(RATE), 4)
    transform = optax.chain(
      accumulated.gradient_transformation(),
      decopt.mix_iterates(decopt.every(decopt.all_reduce(), 4)),
    )
    init, step = execute(transform.init), execute(transform.update)
    params, grads = np.arange(8.0, dtype=np.float32), np.ones(8, np.float32)
    state = init(params)
    for t in range(1, 9):
      updates, state = step(grads * t, state, params)
      params = params + np.asarray(updates)
      if t == 3:
        np.testing.assert_array_equal(params, np.arange(8.0))
    expected = 3.5 - RATE * (1 + 2 + 3 + 4) / 4 - RATE * (5 + 6 + 7 + 8) / 4
    np.testing.assert_allclose(params, np.full(8, expected), rtol=1e-5)

  @parameterized.named_parameters(
    ('accumulation', lambda tx: optax.MultiSteps(tx, 2)),
    ('guard', lambda tx: optax.apply_if_finite(tx, 2)),
  )
  def test_wrappers_that_count_for_each_worker_do_not_go_around(self, wrap):
    transform = wrap(decopt.local_sgd(optax.sgd(RATE), 2))
    x = jnp.arange(8.0)
    state = decopt.spmd(transform.init)(x)
    for name in ('simulation', 'unrolled', 'packed_4x2'):
      with self.assertRaisesRegex(
        ValueError, r'(?s)Clock.*differ between workers.*MultiSteps'
      ):
        helpers.LAYOUTS[name](transform.update)(x, state, x)

  @parameterized.named_parameters(helpers.cases(helpers.LAYOUTS))
  def test_a_flax_train_state_trains(self, execute):
    model = nn.Dense(1)
    transform = decopt.decentralized_local_sgd(
      optax.adam(0.1), self.topology, 2
    )

    def create(key):
      return train_state.TrainState.create(
        apply_fn=model.apply,
        params=model.init(key, jnp.ones(3))['params'],
        tx=transform,
      )

    def step(state, batch):
      def loss(params):
        prediction = state.apply_fn({'params': params}, batch)
        return jnp.mean(jnp.square(prediction - 1))

      value, grads = jax.value_and_grad(loss)(state.params)
      return state.apply_gradients(grads=grads), value

    state = execute(create)(jax.random.split(jax.random.key(0), 8))
    batch = jax.random.normal(jax.random.key(1), (8, 5, 3))
    step = execute(step)
    losses = []
    for _ in range(30):
      state, value = step(state, batch)
      losses.append(float(np.mean(value)))
    self.assertLess(losses[-1], losses[0] / 4)
    np.testing.assert_array_equal(state.step, np.full(8, 30))


if __name__ == '__main__':
  absltest.main()
