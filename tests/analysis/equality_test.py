"""Which algorithms keep all workers equal."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from tests import helpers

SGD = optax.sgd(0.1)
RING = decopt.ring(4)


def _stateless(update):
  return optax.GradientTransformation(
    optax.identity().init, lambda g, s, p=None: (jax.tree.map(update, g), s)
  )


def _by_index(x):
  return x * decopt.worker_index().astype(x.dtype)


def _by_group(gradient):
  groups = [[0, 1], [2, 3]]
  return jax.lax.psum(gradient, 'workers', axis_index_groups=groups)


EQUAL = {
  'sgd': decopt.all_reduce_sgd(SGD),
  'adam': decopt.all_reduce_sgd(optax.adam(1e-3)),
  'schedule': decopt.all_reduce_sgd(optax.sgd(lambda t: 0.1 / (1 + t))),
  'clip_after': optax.chain(
    decopt.all_reduce(), optax.clip_by_global_norm(1.0), SGD
  ),
  'scale_before': optax.chain(optax.scale(0.5), decopt.all_reduce(), SGD),
  'decay_before': optax.chain(
    optax.add_decayed_weights(0.1), decopt.all_reduce(), SGD
  ),
  'damped_to_the_end': optax.chain(decopt.all_reduce(), decopt.all_reduce()),
  'repeated': optax.chain(decopt.repeated(decopt.all_reduce(), 2), SGD),
}
DIFFERENT = {
  'mean_of_a_group': optax.chain(_stateless(_by_group), SGD),
  'local': SGD,
  'dsgd': decopt.dsgd(SGD, RING),
  'diffusion': decopt.diffusion(SGD, RING),
  'local_sgd': decopt.local_sgd(SGD, 2),
  # The mean is taken of what is not linear in the gradient.
  'clip_before': optax.chain(
    optax.clip_by_global_norm(1.0), decopt.all_reduce(), SGD
  ),
  'sign_before': optax.chain(optax.sign_sgd(0.1), decopt.all_reduce()),
  'square_before': optax.chain(
    _stateless(lambda g: g * g), decopt.all_reduce(), SGD
  ),
  'rounded_before': optax.chain(
    _stateless(lambda g: g.astype(jnp.int8).astype(g.dtype)),
    decopt.all_reduce(),
    SGD,
  ),
  'scale_by_the_index': optax.chain(
    _stateless(_by_index), decopt.all_reduce(), SGD
  ),
  'every_second': optax.chain(decopt.every(decopt.all_reduce(), 2), SGD),
  'damped': optax.chain(decopt.damped(decopt.all_reduce(), 0.5), SGD),
  'complete_graph': optax.chain(decopt.gossip(decopt.complete(4)), SGD),
}


class KeepsWorkersEqualTest(parameterized.TestCase):
  @parameterized.named_parameters(helpers.cases(EQUAL))
  def test_holds_if_gradients_enter_through_their_mean(self, transform):
    params = {'a': jnp.ones(3), 'b': jnp.ones((2, 2))}
    self.assertTrue(decopt.keeps_workers_equal(transform, params, 4))

  @parameterized.named_parameters(helpers.cases(DIFFERENT))
  def test_does_not_hold_otherwise(self, transform):
    params = {'a': jnp.ones(3), 'b': jnp.ones((2, 2))}
    self.assertFalse(decopt.keeps_workers_equal(transform, params, 4))

  @parameterized.named_parameters(helpers.cases(EQUAL))
  def test_then_the_mean_gradient_does_as_well(self, transform):
    rng = np.random.default_rng(0)
    grads = rng.normal(size=(4, 5)).astype(np.float32)
    params = jnp.ones((4, 5))
    state = decopt.spmd(transform.init)(params)
    update = decopt.spmd(lambda g, s, p: transform.update(g, s, p)[0])
    mean = np.broadcast_to(grads.mean(axis=0), grads.shape)
    own, common = update(grads, state, params), update(mean, state, params)
    np.testing.assert_allclose(own, common, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(own, own[jnp.zeros(4, int)])


if __name__ == '__main__':
  absltest.main()
