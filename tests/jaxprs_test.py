"""Reading programs: what an equation is, and interpreting it."""

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized
from jax import lax

from decopt import jaxprs


def _trace(fn, *args):
  def flat(*args):
    return jax.tree.leaves(fn(*args))

  return jaxprs.trace(flat, args, 'workers', 4)


X = np.ones(3, np.float32)

COLLECTIVES = {
  'psum': lambda x: lax.psum(x, 'workers'),
  'pmax': lambda x: lax.pmax(x, 'workers'),
  'ppermute': lambda x: lax.ppermute(x, 'workers', [(0, 1), (1, 0)]),
  'all_gather': lambda x: lax.all_gather(x, 'workers'),
  'in_jit': jax.jit(lambda x: lax.pmean(x, 'workers')),
  'in_scan': lambda x: lax.scan(
    lambda x, _: (lax.pmean(x, 'workers'), None), x, length=2
  ),
  'in_cond': lambda x: lax.cond(
    x[0] > 0, lambda x: lax.pmean(x, 'workers'), lambda x: x, x
  ),
  'in_while': lambda x: lax.while_loop(
    lambda x: x[0] < 1, lambda x: lax.pmean(x, 'workers'), x
  ),
  'in_remat': jax.checkpoint(lambda x: lax.pmean(x, 'workers')),
}
SILENT = {
  'sum': jnp.sum,
  'another_axis': lambda x: jax.vmap(
    lambda x: lax.psum(x, 'others'), axis_name='others'
  )(x),
}


def _any(predicate, fn):
  jaxpr, _ = jaxprs.opened(_trace(fn, X))
  return any(predicate(eqn, 'workers') for eqn in jaxpr.eqns)


class PredicatesTest(parameterized.TestCase):
  @parameterized.named_parameters(
    (f'_{name}', fn) for name, fn in COLLECTIVES.items()
  )
  def test_collectives_are_found_however_deep(self, fn):
    self.assertTrue(_any(jaxprs.communicates, fn))
    self.assertTrue(_any(jaxprs.mentions, fn))

  @parameterized.named_parameters(
    (f'_{name}', fn) for name, fn in SILENT.items()
  )
  def test_what_is_local_is_not_a_collective(self, fn):
    self.assertFalse(_any(jaxprs.communicates, fn))
    self.assertFalse(_any(jaxprs.mentions, fn))

  def test_asking_for_the_index_is_no_message(self):
    def fn(x):
      return x * lax.axis_index('workers')

    self.assertTrue(_any(jaxprs.mentions, fn))
    self.assertFalse(_any(jaxprs.communicates, fn))


class WalkTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('arithmetic', lambda x, y: jnp.sin(x) * y + 2),
    ('constants', lambda x, y: x + np.arange(3, dtype=np.float32) * y),
    ('jit', lambda x, y: jax.jit(jnp.dot)(x, y)),
    ('scan', lambda x, y: lax.scan(lambda c, z: (c + z * x, c), y, x)),
    ('cond', lambda x, y: lax.cond(y[0] > 0, jnp.sin, jnp.cos, x)),
    (
      'while',
      lambda x, y: lax.while_loop(lambda x: x[0] < 9, lambda x: x + y, x),
    ),
    ('custom_jvp', lambda x, y: jax.nn.relu(x) - jax.nn.silu(y)),
    ('keys', lambda x, y: x + jax.random.normal(jax.random.key(0), y.shape)),
    ('an_argument_returned', lambda x, y: (y, x, x)),
    ('argsort', lambda x, y: jnp.argsort(x)),
  )
  def test_binding_every_equation_runs_the_program(self, fn):
    x, y = X, np.array([3.0, 1.0, 2.0], np.float32)
    results = jaxprs.walk(_trace(fn, x, y), [x, y], jaxprs.bind)
    jax.tree.map(
      np.testing.assert_array_equal, results, jax.tree.leaves(fn(x, y))
    )

  def test_calls_can_be_opened(self):
    jaxpr = _trace(lambda x: jax.jit(jax.nn.relu)(x), X)
    names = []

    def rule(eqn, inputs):
      inner = jaxprs.called(eqn)
      if inner is not None:
        return jaxprs.walk(inner, inputs, rule)
      names.append(eqn.primitive.name)
      return jaxprs.bind(eqn, inputs)

    np.testing.assert_array_equal(jaxprs.walk(jaxpr, [X], rule)[0], X)
    self.assertEqual(names, ['max'])

  def test_constants_can_be_replaced(self):
    jaxpr = _trace(lambda x: x * np.array([1, 2, 3], np.float32) + 1, X)
    labels = set()

    def rule(eqn, inputs):
      labels.update(inputs)
      return ['out'] * len(eqn.outvars)

    jaxprs.walk(jaxpr, ['in'], rule, lambda value: 'constant')
    self.assertLessEqual({'in', 'constant'}, labels)


if __name__ == '__main__':
  absltest.main()
