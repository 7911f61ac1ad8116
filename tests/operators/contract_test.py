"""The contract of `decopt.base`, kept by every operator."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import optax
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from tests import helpers

APPLICATIONS = 5

TREES = {
  'array': jnp.ones(3),
  'nested': {
    'a': [jnp.ones((2, 3)), {'b': jnp.ones(())}],
    'c': (jnp.ones((1, 1, 4)), None),
  },
  'narrow': {
    'a': jnp.ones(3, jnp.bfloat16),
    'b': jnp.ones((2, 2), jnp.float16),
  },
  'mixed': (jnp.ones(2), jnp.ones(3, jnp.bfloat16), jnp.ones((), jnp.bfloat16)),
  'without_entries': {'a': jnp.ones((0, 3)), 'b': jnp.ones(2)},
  'empty': {},
}


def _shapes(tree):
  return jax.tree.map(lambda x: (x.shape, x.dtype), tree)


def _operators(workers=helpers.WORKERS):
  return {name: row.build(workers) for name, row in helpers.OPERATORS.items()}


def _apply(operators):
  """A worker function that applies each operator to a tree of its own."""

  def update(trees, states):
    results = {
      name: operator.update(trees[name], states[name])
      for name, operator in operators.items()
    }
    return (
      {name: tree for name, (tree, _) in results.items()},
      {name: state for name, (_, state) in results.items()},
    )

  def init(tree):
    return {name: operator.init(tree) for name, operator in operators.items()}

  return init, update


class ContractTest(parameterized.TestCase):
  @parameterized.named_parameters(helpers.cases(helpers.EXECUTORS))
  def test_is_its_matrix_in_every_layout(self, execute):
    x = np.random.default_rng(0).normal(size=(helpers.WORKERS, 5))
    init, update = map(execute, _apply(_operators()))
    with jax.enable_x64(True):
      # Two leaves, so that buckets are filled and emptied.
      tree = {'a': jnp.asarray(x[:, :4]).reshape(-1, 2, 2), 'b': x[:, 4]}
      states = init(tree)
      trees = dict.fromkeys(helpers.OPERATORS, tree)
      expected = dict.fromkeys(helpers.OPERATORS, x)
      for t in range(APPLICATIONS):
        trees, states = jax.block_until_ready(update(trees, states))
        for name, row in helpers.OPERATORS.items():
          expected[name] = row.oracle(expected[name], t)
          a, b = trees[name]['a'].reshape(-1, 4), trees[name]['b']
          np.testing.assert_allclose(
            np.column_stack([a, b]), expected[name], rtol=1e-12, err_msg=name
          )

  @parameterized.named_parameters(('two', 2), ('three', 3), ('seven', 7))
  def test_is_its_matrix_for_other_numbers_of_workers(self, workers):
    x = np.random.default_rng(0).normal(size=(workers, 3))
    init, update = map(decopt.spmd, _apply(_operators(workers)))
    with jax.enable_x64(True):
      states = init(jnp.asarray(x))
      trees = dict.fromkeys(helpers.OPERATORS, jnp.asarray(x))
      expected = dict.fromkeys(helpers.OPERATORS, x)
      for t in range(APPLICATIONS):
        trees, states = update(trees, states)
        for name, row in helpers.OPERATORS.items():
          expected[name] = row.oracle(expected[name], t)
          np.testing.assert_allclose(
            trees[name], expected[name], rtol=1e-12, err_msg=name
          )

  @parameterized.named_parameters(helpers.cases(helpers.OPERATORS, TREES))
  def test_o1_o2_keeps_structure_shapes_and_dtypes(self, row, tree):
    operator = row.build(helpers.WORKERS)

    def twice(tree):
      state = operator.init(tree)
      once, after = operator.update(tree, state)
      return state, after, once, operator.update(once, after, once)

    stacked = decopt.replicate(tree, helpers.WORKERS)
    for execute in (helpers.LAYOUTS['simulation'], helpers.LAYOUTS['mesh']):
      state, after, once, (twice_tree, last) = jax.eval_shape(
        execute(twice, workers=helpers.WORKERS), stacked
      )
      self.assertEqual(_shapes(once), _shapes(stacked))
      self.assertEqual(_shapes(twice_tree), _shapes(stacked))
      self.assertEqual(_shapes(after), _shapes(state))
      self.assertEqual(_shapes(last), _shapes(state))

  @parameterized.named_parameters(helpers.cases(helpers.OPERATORS))
  def test_o1_keeps_double_precision(self, row):
    operator = row.build(helpers.WORKERS)
    with jax.enable_x64(True):
      tree = {'a': jnp.ones((8, 3)), 'b': jnp.ones(8, jnp.float32)}
      result = jax.eval_shape(
        decopt.spmd(lambda t: operator.update(t, operator.init(t))[0]), tree
      )
    self.assertEqual(_shapes(result), _shapes(tree))

  @parameterized.named_parameters(
    helpers.cases(
      {
        name: helpers.LAYOUTS[name]
        for name in ('simulation', 'unrolled', 'mesh', 'packed_4x2')
      }
    )
  )
  def test_o2_state_may_be_carried_by_scan_and_cond(self, execute):
    operators = _operators()
    init, update = _apply(operators)

    def train(tree):
      def body(carry, _):
        return jax.lax.cond(True, update, lambda *c: c, *carry), None

      start = (dict.fromkeys(operators, tree), init(tree))
      return jax.lax.scan(body, start, length=APPLICATIONS)[0][0]

    x = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
    for name, result in execute(train)(x).items():
      expected = x
      for t in range(APPLICATIONS):
        expected = helpers.OPERATORS[name].oracle(expected, t)
      np.testing.assert_allclose(
        result, expected, rtol=1e-5, atol=1e-6, err_msg=name
      )

  @parameterized.named_parameters(helpers.cases(helpers.OPERATORS))
  def test_o4_never_lets_data_decide_who_communicates(self, row):
    operator = row.build(helpers.WORKERS)
    found = decopt.data_dependent_collectives(operator, jnp.zeros(3), 8)
    self.assertEmpty(found)

  @parameterized.named_parameters(helpers.cases(helpers.OPERATORS))
  def test_o5_o6_consensus_and_the_mean_are_kept_as_promised(self, row):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(8, 64)).astype(np.float32)
    same = np.broadcast_to(x[0], x.shape)
    operator = row.build(helpers.WORKERS)

    @decopt.spmd
    def repeat(x):
      state = operator.init(x)
      for _ in range(4):
        x, state = operator.update(x, state)
      return x

    apart, together = repeat(x), repeat(same)
    keeps_mean = np.allclose(apart.mean(0), x.mean(0), rtol=0, atol=1e-6)
    self.assertEqual(keeps_mean, row.keeps_mean)
    keeps_consensus = np.allclose(together, same, rtol=1e-6, atol=0)
    self.assertEqual(keeps_consensus, row.keeps_consensus)

  @parameterized.parameters(
    decopt.all_reduce,
    decopt.damped,
    decopt.every,
    decopt.gossip,
    decopt.renormalized_gossip,
    decopt.repeated,
  )
  def test_o6_the_docstring_says_what_happens_to_the_mean(self, factory):
    documentation = ' '.join(inspect.getdoc(factory).split())
    self.assertRegex(
      documentation,
      r'preserves the mean|mean (over workers )?is (\*not\* )?preserved',
    )

  @parameterized.named_parameters(helpers.cases(helpers.OPERATORS))
  def test_integers_are_refused_with_their_path(self, row):
    operator = row.build(helpers.WORKERS)
    tree = {'net': {'steps': jnp.zeros(8, jnp.int32), 'w': jnp.zeros(8)}}
    with self.assertRaisesRegex(
      TypeError, r"\['net'\]\['steps'\].*int32.*optax\.masked"
    ):
      decopt.spmd(lambda t: operator.update(t, operator.init(t))[0])(tree)

  @parameterized.named_parameters(helpers.cases(helpers.OPERATORS))
  def test_outside_of_workers_there_is_advice(self, row):
    operator = row.build(helpers.WORKERS)
    x = jnp.zeros(8)
    with self.assertRaisesRegex(
      NameError, r"no axis named 'workers'.*decopt\.spmd.*jax\.vmap"
    ):
      operator.update(x, operator.init(x))

  @parameterized.named_parameters(helpers.cases(helpers.OPERATORS))
  def test_promotes_no_dtypes_silently(self, row):
    operator = row.build(helpers.WORKERS)
    with jax.numpy_dtype_promotion('strict'):
      for dtype in (jnp.float32, jnp.bfloat16):
        for execute in helpers.LAYOUTS.values():
          jax.eval_shape(
            execute(lambda t: operator.update(t, operator.init(t))),
            jnp.ones((8, 3), dtype),
          )

  @parameterized.named_parameters(helpers.cases(helpers.OPERATORS))
  def test_extra_arguments_pass_through(self, row):
    operator = row.build(helpers.WORKERS)
    self.assertIsInstance(operator, optax.GradientTransformationExtraArgs)
    jax.eval_shape(
      decopt.spmd(
        lambda t: operator.update(t, operator.init(t), t, loss=1.0, other=t)
      ),
      jnp.ones((8, 3)),
    )


if __name__ == '__main__':
  absltest.main()
