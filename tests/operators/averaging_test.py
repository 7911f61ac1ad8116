"""Gossip and all-reduce: numbers, and what they refuse."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from tests import helpers

LAYOUTS = {
  name: helpers.LAYOUTS[name] for name in ('simulation', 'mesh', 'packed_4x2')
}


def _once(operator):
  return lambda tree: operator.update(tree, operator.init(tree))[0]


class GossipTest(parameterized.TestCase):
  @parameterized.named_parameters(helpers.cases(LAYOUTS))
  def test_narrow_numbers_are_rounded_once(self, execute):
    # Products and sums in bfloat16 would be off by several of its digits.
    topology = helpers.irregular(8)
    x = np.random.default_rng(0).normal(size=(8, 500))
    x = jnp.asarray(x, jnp.bfloat16)
    result = execute(_once(decopt.gossip(topology)))(x)
    exact = topology.weights[0] @ np.asarray(x, np.float64)
    error = np.abs(np.asarray(result, np.float64) - exact)
    self.assertTrue((error <= 2**-8 * np.abs(exact) + 1e-6).all())

  @parameterized.named_parameters(helpers.cases(LAYOUTS))
  def test_a_topology_of_another_size_is_refused_with_both(self, execute):
    operator = decopt.gossip(decopt.ring(4))
    with self.assertRaisesRegex(
      ValueError, "'ring' has 4 workers but the axis 'workers' has 8.*workers=8"
    ):
      execute(_once(operator))(jnp.zeros(8))

  def test_weights_for_push_sum_are_refused(self):
    columns = decopt.Topology([[1.0, 0.5], [0.0, 0.5]], 'push')
    with self.assertRaisesRegex(
      ValueError, "rows sum to 1.*'push'.*metropolis"
    ):
      decopt.gossip(columns)

  def test_state_is_empty_unless_the_graph_changes(self):
    self.assertEmpty(jax.tree.leaves(decopt.gossip(decopt.ring(8)).init({})))
    changing = decopt.gossip(decopt.one_peer_exponential(8)).init({})
    self.assertIsInstance(changing.step, decopt.Clock)
    self.assertEqual(changing.step.count, 0)

  @parameterized.named_parameters(helpers.cases(LAYOUTS))
  def test_the_axis_may_have_another_name(self, execute):
    x = jnp.arange(8.0)
    for operator in (
      decopt.gossip(decopt.complete(8), axis_name='peers'),
      decopt.all_reduce(axis_name='peers'),
    ):
      result = execute(_once(operator), axis_name='peers')(x)
      np.testing.assert_allclose(result, np.full(8, 3.5), rtol=1e-6)
      with self.assertRaisesRegex(NameError, "'peers'"):
        execute(_once(operator))(x)

  def test_a_plain_vmap_is_a_layout_too(self):
    topology = decopt.ring(8)
    x = jnp.arange(8.0)
    result = jax.vmap(_once(decopt.gossip(topology)), axis_name='workers')(x)
    np.testing.assert_allclose(result, topology.weights[0] @ x, rtol=1e-6)

  def test_a_plain_shard_map_is_a_layout_too(self):
    topology = helpers.irregular(8)
    x = jnp.arange(8.0)
    spec = jax.sharding.PartitionSpec('workers')
    run = jax.jit(
      jax.shard_map(
        _once(decopt.gossip(topology)),
        mesh=decopt.make_mesh(8),
        in_specs=spec,
        out_specs=spec,
      )
    )
    np.testing.assert_allclose(run(x), topology.weights[0] @ x, rtol=1e-6)

  def test_complex_numbers_are_averaged(self):
    x = jnp.arange(8) * (1 + 2j)
    result = decopt.spmd(_once(decopt.gossip(decopt.complete(8))))(x)
    np.testing.assert_allclose(result, np.full(8, 3.5 + 7j), rtol=1e-6)

  def test_a_mask_says_which_leaves_are_mixed(self):
    params = {'mine': jnp.arange(8.0), 'ours': jnp.arange(8.0)}
    operator = optax.masked(
      decopt.gossip(decopt.complete(8)), {'mine': False, 'ours': True}
    )
    result = decopt.spmd(_once(operator))(params)
    np.testing.assert_array_equal(result['mine'], params['mine'])
    np.testing.assert_allclose(result['ours'], np.full(8, 3.5), rtol=1e-6)


class AllReduceTest(parameterized.TestCase):
  @parameterized.named_parameters(helpers.cases(helpers.LAYOUTS))
  def test_all_workers_hold_the_same_afterwards(self, execute):
    x = np.random.default_rng(0).normal(size=(8, 100)).astype(np.float32)
    result = np.asarray(execute(_once(decopt.all_reduce()))(x))
    np.testing.assert_array_equal(result, result[[0] * 8])
    np.testing.assert_allclose(result[0], x.mean(axis=0), rtol=1e-5, atol=1e-7)


if __name__ == '__main__':
  absltest.main()
