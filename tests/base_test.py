"""What all workers share, and the dtype to compute in."""

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from decopt import base


class ClockTest(parameterized.TestCase):
  def test_counts_in_int32_whatever_else_is_wide(self):
    for wide in (False, True):
      with jax.enable_x64(wide):
        clock = decopt.Clock.start(2).tick()
        self.assertEqual(clock.count, 3)
        self.assertEqual(clock.count.dtype, jnp.int32)

  def test_stops_at_the_largest_number(self):
    last = decopt.Clock.start(np.iinfo(np.int32).max)
    self.assertEqual(last.tick().count, last.count)

  def test_is_a_pytree_with_one_leaf(self):
    clock = decopt.Clock.start(5)
    [leaf] = jax.tree.leaves(clock)
    self.assertEqual(leaf, 5)
    self.assertTrue(base.is_shared(jax.tree.map(lambda x: x + 1, clock)))
    self.assertFalse(base.is_shared(leaf))

  def test_under_a_vmap_of_ones_own_it_is_stacked_like_the_rest(self):
    operator = decopt.every(decopt.all_reduce(), 2)
    x = jnp.arange(4.0)
    init = jax.vmap(operator.init, axis_name='workers')
    update = jax.vmap(operator.update, axis_name='workers')
    state = init(x)
    self.assertEqual(state.step.count.shape, (4,))
    once, state = update(x, state)
    twice, state = update(once, state)
    np.testing.assert_array_equal(once, x)
    np.testing.assert_array_equal(twice, np.full(4, 1.5))
    np.testing.assert_array_equal(state.step.count, np.full(4, 2))


class SharedTest(absltest.TestCase):
  def test_is_a_pytree_of_what_it_holds(self):
    shared = decopt.Shared({'a': jnp.zeros(3), 'b': (jnp.ones(()), None)})
    self.assertLen(jax.tree.leaves(shared), 2)
    self.assertTrue(base.is_shared(jax.tree.map(lambda x: x + 1, shared)))
    self.assertFalse(base.is_shared(shared.value))

  def test_may_be_empty(self):
    self.assertEmpty(jax.tree.leaves(decopt.Shared(())))


class WideTest(parameterized.TestCase):
  @parameterized.parameters(
    ('bfloat16', 'float32'),
    ('float16', 'float32'),
    ('float8_e4m3fn', 'float32'),
    ('float32', 'float32'),
    ('float64', 'float64'),
    ('complex64', 'complex64'),
  )
  def test_nothing_is_computed_in_narrow_numbers(self, dtype, wide):
    with jax.numpy_dtype_promotion('strict'):
      self.assertEqual(base.wide(jnp.dtype(dtype)), jnp.dtype(wide))


if __name__ == '__main__':
  absltest.main()
