"""The unrolled simulation computes what `jax.vmap` computes."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from absl.testing import absltest
from absl.testing import parameterized
from jax import lax

import decopt

X = np.random.default_rng(0).normal(size=(8, 8, 2)).astype(np.float32)


@jax.custom_jvp
def _custom_jvp(x):
  return jnp.sin(x) - lax.pmean(x, 'workers')


@_custom_jvp.defjvp
def _custom_jvp_rule(primals, tangents):
  (x,), (dx,) = primals, tangents
  return _custom_jvp(x), 3 * dx + lax.pmean(dx, 'workers')


@jax.custom_vjp
def _custom_vjp(x):
  return jnp.sin(x) * lax.pmean(x, 'workers')


_custom_vjp.defvjp(lambda x: (_custom_vjp(x), x), lambda x, g: (5 * x * g,))


def _shift(x, by=1):
  return lax.ppermute(x, 'workers', [(i, (i + by) % 8) for i in range(8)])


def _scan(x):
  return lax.scan(
    lambda x, y: (_shift(x) + y, lax.pmax(x, 'workers')), x, jnp.ones((3, 8, 2))
  )


def _while(x):
  return lax.while_loop(
    lambda carry: carry[0] < 4, lambda c: (c[0] + 1, _shift(c[1])), (0, x)
  )


def _cond_on_data(x):
  # Which branch is taken differs between workers; without collectives.
  return lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x) + lax.pmean(x, 'workers')


def _switch_on_a_counter(x):
  branches = [lambda x: x, _shift, lambda x: lax.pmean(x, 'workers')]
  return [lax.switch(jnp.int32(i), branches, x) for i in range(3)]


def _branches_that_differ(x):
  # One makes all workers equal, the other keeps what is equal already.
  total = lax.psum(x, 'workers')
  return lax.cond(
    decopt.Clock.start(1).count > 0,
    lambda t, x: (t, x),
    lambda t, x: (_shift(x), t),
    total,
    x,
  )


FUNCTIONS = {
  'ppermute': _shift,
  'psum': lambda x: lax.psum(x, 'workers'),
  'psum_of_a_constant': lambda x: x * lax.psum(1, 'workers'),
  'psum_of_what_is_equal': lambda x: lax.psum(
    lax.psum(x, 'workers'), 'workers'
  ),
  'pmean_of_a_tree': lambda x: lax.pmean({'a': x, 'b': x[0]}, 'workers'),
  'pmax': lambda x: lax.pmax(x, 'workers'),
  'all_gather': lambda x: lax.all_gather(x, 'workers'),
  'all_gather_tiled': lambda x: lax.all_gather(
    x, 'workers', axis=1, tiled=True
  ),
  'psum_scatter': lambda x: lax.psum_scatter(x, 'workers'),
  'all_to_all': lambda x: lax.all_to_all(x, 'workers', 0, 0),
  'axis_index': lambda x: x[lax.axis_index('workers')],
  'scan': _scan,
  'while': _while,
  'cond_on_data': _cond_on_data,
  'switch_on_a_counter': _switch_on_a_counter,
  'branches_that_differ': _branches_that_differ,
  'custom_jvp': _custom_jvp,
  'custom_jvp_differentiated': lambda x: jax.jvp(_custom_jvp, (x,), (x,)),
  'custom_vjp': _custom_vjp,
  'custom_vjp_differentiated': jax.grad(lambda x: jnp.sum(_custom_vjp(x))),
  'remat': jax.grad(
    jax.checkpoint(lambda x: jnp.sum(jnp.sin(lax.pmean(x, 'workers')) * x))
  ),
  'nested_jit': jax.jit(lambda x: jax.jit(_shift)(jnp.sin(x))),
  'random': lambda x: jax.random.normal(
    jax.random.fold_in(jax.random.key(0), lax.axis_index('workers'))
  ),
  'gossip': lambda x: decopt.mix(x, decopt.exponential(8)),
  'constants': lambda x: (jnp.arange(3), 1.0, x),
  'nothing': lambda x: [],
}


class UnrolledTest(parameterized.TestCase):
  @parameterized.named_parameters(
    (f'_{name}', fn) for name, fn in FUNCTIONS.items()
  )
  def test_equals_vmap(self, fn):
    expected = jax.vmap(fn, axis_name='workers', out_axes=0)(X)
    actual = decopt.spmd(fn, mapping='unrolled')(X)
    self.assertEqual(
      jax.tree.map(lambda x: (x.shape, x.dtype), actual),
      jax.tree.map(lambda x: (x.shape, x.dtype), expected),
    )
    jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6),
      actual,
      expected,
    )

  def test_a_permutation_may_be_partial(self):
    # On devices too, workers without a partner get zeros; vmap refuses.
    pairs = [(0, 3), (1, 0)]
    actual = decopt.spmd(
      lambda x: lax.ppermute(x, 'workers', pairs), mapping='unrolled'
    )(X)
    expected = np.zeros_like(X)
    expected[3], expected[0] = X[0], X[1]
    np.testing.assert_array_equal(actual, expected)

  def test_sums_over_groups_are_refused_as_under_vmap(self):
    def sum_of_group(x):
      return lax.psum(
        x, 'workers', axis_index_groups=[[0, 1, 2, 3], [4, 5, 6, 7]]
      )

    for mapping in ('vmap', 'unrolled'):
      with self.assertRaisesRegex(NotImplementedError, 'axis_index_groups'):
        decopt.spmd(sum_of_group, mapping=mapping)(X)

  def test_what_all_workers_share_is_computed_once(self):
    traced = jax.make_jaxpr(
      decopt.spmd(
        lambda table, x: x + jnp.sin(table),
        mapping='unrolled',
        shared_argnums=0,
      )
    )(np.ones(2, np.float32), X[:, 0])
    self.assertEqual(str(traced).count(' sin '), 1)

  def test_what_all_workers_hear_is_gathered_once(self):
    def worker_fn(x):
      return jnp.sin(lax.all_gather(x, 'workers'))[lax.axis_index('workers')]

    traced = jax.make_jaxpr(decopt.spmd(worker_fn, mapping='unrolled'))(X)
    self.assertEqual(str(traced).count(' sin '), 1)

  def test_a_clock_counts_for_all(self):
    operator = decopt.every(decopt.gossip(decopt.one_peer_exponential(8)), 2)
    results = {}
    for mapping in ('vmap', 'unrolled'):
      update = decopt.spmd(operator.update, mapping=mapping)
      x, state = X, decopt.spmd(operator.init)(X)
      for _ in range(5):
        x, state = update(x, state)
      self.assertEqual(state.step.count, 5)
      self.assertEqual(state.inner.step.count, 2)
      results[mapping] = x
    np.testing.assert_allclose(
      results['unrolled'], results['vmap'], rtol=1e-5, atol=1e-6
    )

  def test_a_clock_may_be_carried_by_a_loop_of_the_worker(self):
    transform = decopt.local_sgd(optax.sgd(0.1), 2)

    def train(state, x):
      def step(carry, _):
        x, state = carry
        updates, state = transform.update(x, state, x)
        return (x + updates, state), None

      return lax.scan(step, (x, state), length=5)[0]

    state = decopt.spmd(transform.init)(X)
    expected, _ = decopt.spmd(train)(state, X)
    actual, state = decopt.spmd(train, mapping='unrolled')(state, X)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
    self.assertEqual(state[-1].step.count, 5)

  def test_a_clock_is_shared_inside_of_local_code_too(self):
    @jax.jit
    def nested(x, clock):
      return 2 * x, clock.tick()

    def worker_fn(x, clock):
      x, clock = nested(x, clock)
      return lax.cond(clock.count > 0, nested, lambda x, c: (x, c), x, clock)

    x, clock = decopt.spmd(worker_fn, mapping='unrolled')(
      X, decopt.Clock.start()
    )
    np.testing.assert_array_equal(x, 4 * X)
    self.assertEqual(clock.count, 2)

  def test_a_clock_that_would_differ_between_workers_is_refused(self):
    def worker_fn(clock, x):
      return jax.tree.map(
        lambda count: jnp.where(x[0, 0] > 0, count, count + 1), clock
      )

    with self.assertRaisesRegex(ValueError, 'Clock.*differ between workers'):
      decopt.spmd(worker_fn, mapping='unrolled')(decopt.Clock.start(), X)


if __name__ == '__main__':
  absltest.main()
