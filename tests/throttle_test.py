"""Few steps in flight."""

import subprocess
import sys
import textwrap

import jax.numpy as jnp
from absl.testing import absltest
from absl.testing import parameterized

import decopt


class _Step:
  """A result that knows how many of its kind nobody has waited for."""

  def __init__(self, waited):
    self._waited = waited

  def block_until_ready(self):
    self._waited.append(self)
    return self


class ThrottleTest(parameterized.TestCase):
  @parameterized.parameters(1, 2, 8)
  def test_never_more_than_the_limit_are_in_flight(self, limit):
    throttle, waited = decopt.Throttle(limit), []
    steps = [_Step(waited) for _ in range(20)]
    for i, step in enumerate(steps, 1):
      self.assertIs(throttle.admit(step), step)
      self.assertEqual(waited, steps[: max(0, i - limit)])
    throttle.drain()
    self.assertEqual(waited, steps)
    throttle.drain()
    self.assertEqual(waited, steps)

  def test_takes_arrays_and_trees_of_them(self):
    throttle = decopt.Throttle(1)
    tree = {'loss': jnp.ones(2), 'more': [jnp.zeros(())]}
    for _ in range(3):
      self.assertIs(throttle.admit(tree), tree)
    throttle.drain()

  @parameterized.parameters(0, -1)
  def test_a_limit_below_one_is_refused(self, limit):
    with self.assertRaisesRegex(ValueError, f'limit={limit}.*at least 1'):
      decopt.Throttle(limit)

  def test_two_hundred_steps_with_collectives_survive(self):
    # On jax 0.10 the same loop without a throttle deadlocks on CPU, and the
    # process is aborted: hence a process of its own.
    program = textwrap.dedent("""
      import jax
      jax.config.update('jax_platforms', 'cpu')
      jax.config.update('jax_num_cpu_devices', 8)
      import jax.numpy as jnp
      import decopt

      step = decopt.spmd(
        lambda x: decopt.mix(x, decopt.ring(8)), mesh=decopt.make_mesh(8)
      )
      throttle, x = decopt.Throttle(), jnp.arange(8.0)
      for _ in range(200):
        x = throttle.admit(step(x))
      throttle.drain()
      print(float(x.min()), float(x.max()))
    """)
    result = subprocess.run(
      [sys.executable, '-c', program],
      capture_output=True,
      text=True,
      timeout=120,
      check=False,
    )
    self.assertEqual(result.returncode, 0, result.stderr)
    for value in map(float, result.stdout.split()):
      self.assertAlmostEqual(value, 3.5, places=4)


if __name__ == '__main__':
  absltest.main()
