"""Single numbers: which kinds are taken, and what the errors say."""

import jax.numpy as jnp
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

from decopt import arguments


class ArgumentsTest(parameterized.TestCase):
  @parameterized.parameters(
    2, 2.0, np.float32(2), np.int8(2), (np.array(2.0),), (jnp.float32(2),)
  )
  def test_numbers_come_from_python_numpy_and_jax(self, value):
    number = arguments.number('mine', speed=value)
    self.assertIs(type(number), float)
    self.assertEqual(number, 2)
    self.assertEqual(arguments.number('mine', speed=jnp.bfloat16(2)), 2)

  @parameterized.parameters('2', b'2', None, True, 2j, ((2.0,),), ([],))
  def test_what_is_no_number_is_named(self, value):
    with self.assertRaisesRegex(TypeError, 'mine needs a number as speed, but'):
      arguments.number('mine', speed=value)
    with self.assertRaisesRegex(TypeError, 'a number from 0 to 1 as part, but'):
      arguments.fraction('mine', part=value)

  @parameterized.parameters(2.0, '2', None, True, np.True_)
  def test_a_count_is_an_integer(self, value):
    with self.assertRaisesRegex(TypeError, 'mine needs an integer as workers'):
      arguments.count('mine', workers=value)

  def test_a_count_is_not_too_small(self):
    self.assertEqual(arguments.count('mine', workers=np.int64(3), least=3), 3)
    with self.assertRaisesRegex(ValueError, '3 or more as workers, but got 2'):
      arguments.count('mine', workers=2, least=3)

  @parameterized.parameters(-0.5, 1.5, float('nan'))
  def test_a_fraction_is_from_zero_to_one(self, value):
    with self.assertRaisesRegex(ValueError, f'0 to 1 as part, but got {value}'):
      arguments.fraction('mine', part=value)


if __name__ == '__main__':
  absltest.main()
