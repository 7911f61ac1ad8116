"""Which part of a state is known before any data are."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from decopt.analysis import partial

PARAMS = {'a': jnp.zeros(3), 'b': jnp.zeros(2)}


def _known(transform):
  """How many leaves of the state are known, and how many there are."""
  program = partial.oblivious(transform, PARAMS, 4, 'workers', {})
  state = jax.eval_shape(transform.init, PARAMS)
  return len(program.start), len(jax.tree.leaves(state))


class ObliviousTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('counter', optax.sgd(lambda t: 0.1 / (1 + t)), 1, 1),
    ('clocks', decopt.local_sgd(optax.sgd(0.1), 3), 2, 2),
    # The moments start with constants, and then depend on gradients.
    ('moments', optax.adam(0.1), 1, 5),
    ('keys', optax.add_noise(0.1, 0.5, jax.random.key(0)), 2, 2),
    # What was the last gradient decides whether this counter moves.
    ('guard', optax.apply_if_finite(optax.identity(), 3), 0, 3),
    (
      'accumulator',
      optax.MultiSteps(optax.sgd(0.1), 3).gradient_transformation(),
      2,
      4,
    ),
  )
  def test_counters_and_schedules_are_known_and_moments_are_not(
    self, transform, known, leaves
  ):
    self.assertEqual(_known(transform), (known, leaves))

  def test_known_leaves_move_as_in_training(self):
    transform = decopt.local_sgd(
      optax.sgd(lambda t: 0.1 / (1 + t)), lambda step: 1 + step
    )
    program = partial.oblivious(transform, PARAMS, 4, 'workers', {})
    values = program.start
    state = decopt.spmd(transform.init)(decopt.replicate(PARAMS, 4))
    stacked = decopt.replicate(PARAMS, 4)
    update = decopt.spmd(transform.update)
    for _ in range(5):
      values, _ = program.step(values)
      _, state = update(stacked, state, stacked)
      for known, leaf in zip(
        values.values(), jax.tree.leaves(state), strict=True
      ):
        np.testing.assert_array_equal(np.broadcast_to(known, leaf.shape), leaf)

  def test_extra_arguments_depend_on_data(self):
    def update(tree, state, params=None, *, loss):
      del params
      mixed = jax.lax.cond(
        loss > 1, lambda x: decopt.mean(x), lambda x: x, tree
      )
      return mixed, state

    transform = optax.GradientTransformationExtraArgs(
      optax.identity().init, update
    )
    found = decopt.data_dependent_collectives(
      transform, PARAMS, 4, loss=jnp.zeros(())
    )
    self.assertNotEmpty(found)


if __name__ == '__main__':
  absltest.main()
