"""What all workers share has no worker axis, in any layout."""

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from decopt import stacking
from tests import helpers

X = jnp.arange(8.0)


def _state():
  return {
    'mine': jnp.ones(2),
    'clock': decopt.Clock.start(3),
    'ours': decopt.Shared((jnp.arange(6).reshape(2, 3), jnp.zeros(4, bool))),
    'nothing': decopt.Shared(()),
  }


def _advance(state):
  table, flags = state['ours'].value
  return {
    'mine': state['mine'] + decopt.worker_index(),
    'clock': state['clock'].tick(),
    'ours': decopt.Shared((table + state['clock'].count, ~flags)),
    'nothing': state['nothing'],
  }


class SharedTest(parameterized.TestCase):
  def test_flags_say_which_leaves_are_shared(self):
    self.assertEqual(stacking.shared_flags(_state()), [True, False, True, True])

  @parameterized.named_parameters(helpers.cases(helpers.LAYOUTS))
  def test_shared_arrays_come_back_as_they_are(self, execute):
    state = execute(lambda x: _state())(X)
    for _ in range(2):
      state = execute(_advance)(state)
    self.assertEqual(state['mine'].shape, (8, 2))
    np.testing.assert_array_equal(state['mine'][:, 0], 1 + 2 * np.arange(8))
    table, flags = state['ours'].value
    np.testing.assert_array_equal(table, np.arange(6).reshape(2, 3) + 3 + 4)
    np.testing.assert_array_equal(flags, np.zeros(4, bool))
    self.assertEqual(state['clock'].count, 5)

  @parameterized.named_parameters(helpers.cases(helpers.LAYOUTS))
  def test_a_loop_of_the_worker_may_carry_them(self, execute):
    def train(x):
      def body(carry, _):
        x, state = carry
        state = _advance(state)
        flags = state['ours'].value[1]
        x = jax.lax.cond(flags[0], lambda x: decopt.mean(x), lambda x: x, x)
        return (x, state), None

      return jax.lax.scan(body, (x, _state()), length=3)[0]

    x, state = execute(train)(X)
    np.testing.assert_allclose(x, np.full(8, 3.5))
    table, flags = state['ours'].value
    np.testing.assert_array_equal(table[0], np.arange(3) + 3 + 4 + 5)
    self.assertTrue(flags.all())

  def test_copies_and_averages_leave_them_alone(self):
    stacked = decopt.replicate(_state(), 8)
    self.assertEqual(stacked['mine'].shape, (8, 2))
    self.assertEqual(stacked['ours'].value[0].shape, (2, 3))
    placed = decopt.place(stacked, decopt.make_mesh(4))
    for tree in (
      decopt.worker(stacked, 3),
      decopt.average(stacked),
      decopt.worker(placed, 0),
    ):
      jax.tree.map(np.testing.assert_array_equal, tree, _state())

  @parameterized.parameters('vmap', 'unrolled')
  def test_what_depends_on_data_is_refused(self, mapping):
    with self.assertRaisesRegex(ValueError, 'Shared.*differ between workers'):
      decopt.spmd(lambda x: decopt.Shared(x > 0), mapping=mapping)(X)


if __name__ == '__main__':
  absltest.main()
