"""One worker function in all layouts, and the ways in and out of stacks."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from decopt.operators.combinators import EveryState
from tests import helpers

X = np.arange(8.0, dtype=np.float32)
MESHES = {
  name: helpers.LAYOUTS[name]
  for name in ('mesh', 'mesh_2x4', 'packed_4x2', 'packed_1x8')
}


class LayoutsTest(parameterized.TestCase):
  @parameterized.named_parameters(helpers.cases(helpers.LAYOUTS))
  def test_workers_know_their_index_and_number(self, execute):
    def whoami(x):
      return decopt.worker_index(), decopt.worker_count() * jnp.ones_like(x)

    index, count = execute(whoami)(X)
    np.testing.assert_array_equal(index, np.arange(8))
    self.assertEqual(index.dtype, jnp.int32)
    np.testing.assert_array_equal(count, np.full(8, 8))

  @parameterized.named_parameters(helpers.cases(helpers.LAYOUTS))
  def test_shared_arguments_have_no_worker_axis(self, execute):
    def gather(data, indices, scale):
      return {'rows': data['x'][indices] * scale}

    data = {'x': np.arange(30.0, dtype=np.float32).reshape(10, 3)}
    indices = np.arange(16).reshape(8, 2) % 10
    run = execute(gather, shared_argnums=(0, 2))
    result = run(data, indices, np.float32(2))
    np.testing.assert_array_equal(result['rows'], 2 * data['x'][indices])

  def test_positions_may_be_counted_from_the_end(self):
    # Of the size of the worker axis, it could be taken for a stacked one.
    table = np.arange(8.0, dtype=np.float32)
    total = decopt.spmd(lambda x, t: x + jnp.sum(t), shared_argnums=-1)
    np.testing.assert_array_equal(
      total(np.zeros(8, np.float32), table), [28] * 8
    )

  @parameterized.named_parameters(helpers.cases(helpers.LAYOUTS))
  def test_functions_of_shared_arguments_need_the_number_of_workers(
    self, execute
  ):
    draw = execute(
      lambda key: jax.random.normal(
        jax.random.fold_in(key, decopt.worker_index())
      ),
      workers=8,
      shared_argnums=0,
    )
    key = jax.random.key(0)
    expected = [jax.random.normal(jax.random.fold_in(key, i)) for i in range(8)]
    np.testing.assert_array_equal(draw(key), expected)

  @parameterized.named_parameters(helpers.cases(helpers.LAYOUTS))
  def test_workers_may_have_keys(self, execute):
    keys = jax.random.split(jax.random.key(0), 8)
    drawn, passed = execute(lambda key: (jax.random.normal(key), key))(keys)
    np.testing.assert_array_equal(drawn, jax.vmap(jax.random.normal)(keys))
    np.testing.assert_array_equal(
      jax.random.key_data(passed), jax.random.key_data(keys)
    )

  @parameterized.named_parameters(helpers.cases(helpers.LAYOUTS))
  def test_constants_may_be_returned(self, execute):
    # As by flax, whose train state begins with the step 0.
    step, x = execute(lambda x: (0, x))(X)
    np.testing.assert_array_equal(step, np.zeros(8))
    np.testing.assert_array_equal(x, X)

  @parameterized.named_parameters(helpers.cases(helpers.LAYOUTS))
  def test_clocks_have_no_worker_axis(self, execute):
    def step(clock, x):
      return clock.tick(), x + clock.count

    clock = decopt.Clock.start(3)
    clock, x = execute(step)(clock, X)
    clock, x = execute(step)(clock, x)
    self.assertEqual(clock.count.shape, ())
    self.assertEqual(clock.count, 5)
    np.testing.assert_array_equal(x, X + 3 + 4)

  @parameterized.named_parameters(helpers.cases(helpers.LAYOUTS))
  def test_jitted_functions_may_be_inside(self, execute):
    @jax.jit
    def centre(x):
      return x - decopt.mean(x)

    np.testing.assert_allclose(execute(lambda x: centre(2 * x))(X), 2 * X - 7)

  @parameterized.named_parameters(helpers.cases(MESHES))
  def test_results_lie_spread_over_the_mesh(self, execute):
    result = execute(lambda x: x + 1)(X)
    devices = len(result.sharding.device_set)
    self.assertEqual(len(result.addressable_shards), devices)
    self.assertEqual(result.addressable_shards[0].data.shape, (8 // devices,))

  @parameterized.parameters('vmap', 'unrolled')
  def test_a_simulation_may_be_mapped_over_seeds(self, mapping):
    def worker_fn(x):
      return decopt.mix(x, decopt.ring(8)) - decopt.mean(x)

    run = decopt.spmd(worker_fn, mapping=mapping)
    seeds = np.random.default_rng(0).normal(size=(3, 8, 2)).astype(np.float32)
    result = jax.vmap(run)(seeds)
    for i, x in enumerate(seeds):
      np.testing.assert_allclose(result[i], run(x), rtol=1e-5, atol=1e-6)

  def test_a_plain_pmean_works_where_the_axis_is_one(self):
    def worker_fn(x):
      return jax.lax.pmean(x, 'workers')

    for name in ('simulation', 'unrolled', 'mesh'):
      result = helpers.LAYOUTS[name](worker_fn)(X)
      np.testing.assert_allclose(result, np.full(8, 3.5))
    # Where the axis is made of two it would average over a part of the workers.
    for name in ('mesh_2x4', 'packed_4x2', 'packed_2x4', 'packed_1x8'):
      with self.assertRaises(NameError):
        helpers.LAYOUTS[name](worker_fn)(X)


class GradientTest(parameterized.TestCase):
  """Derivatives inside of a worker and of the whole, in all layouts."""

  @parameterized.named_parameters(helpers.cases(helpers.LAYOUTS))
  def test_gradients_are_those_of_each_worker(self, execute):
    def worker_fn(x, common):
      return jax.grad(lambda x, c: jnp.sum(x**2 * c), (0, 1))(x, common)

    x, common = execute(worker_fn, shared_argnums=1)(X, np.float32(3))
    np.testing.assert_allclose(x, 6 * X)
    # With the checks of shard_map on, the gradient with respect to a replicated
    # argument is summed over devices, and averaging it does not divide.
    np.testing.assert_allclose(common, X**2)

  @parameterized.named_parameters(helpers.cases(helpers.LAYOUTS))
  def test_the_mean_gradient_is_a_mean(self, execute):
    def worker_fn(x, common):
      return decopt.mean(jax.grad(lambda c: c * x)(common))

    result = execute(worker_fn, shared_argnums=1)(X, np.float32(1))
    np.testing.assert_allclose(result, np.full(8, 3.5))

  @parameterized.named_parameters(helpers.cases(helpers.LAYOUTS))
  def test_mixing_may_be_differentiated(self, execute):
    topology = helpers.biased(8)  # not symmetric
    target = X[::-1].copy()

    def value(x):
      mix = execute(lambda x: decopt.mix(x, topology) + decopt.mean(x))
      return jnp.sum(target * mix(x))

    matrix = topology.weights[0] + np.full((8, 8), 1 / 8)
    np.testing.assert_allclose(jax.grad(value)(X), matrix.T @ target, rtol=1e-6)


class ErrorsTest(parameterized.TestCase):
  def test_an_array_without_the_worker_axis_is_named(self):
    params = {'dense': {'kernel': jnp.zeros((3, 4)), 'bias': jnp.zeros((8, 4))}}
    with self.assertRaisesRegex(
      ValueError,
      r"argument 1\['dense'\]\['kernel'\] has shape \(3, 4\), without a "
      r'leading worker axis of size 8; call decopt\.replicate\(tree, '
      r'workers=8\) first, or name the argument in shared_argnums',
    ):
      decopt.spmd(lambda x, params: x)(X, params)

  def test_a_scalar_without_the_worker_axis_is_named(self):
    with self.assertRaisesRegex(
      ValueError, r'argument 0.*scalar.*replicate.*shared_argnums'
    ):
      decopt.spmd(lambda x: x)(1.0)

  def test_another_number_of_workers_is_refused(self):
    with self.assertRaisesRegex(ValueError, r'\(8,\).*worker axis of size 4'):
      decopt.spmd(lambda x: x, workers=4)(X)

  def test_no_arrays_say_no_number_of_workers(self):
    with self.assertRaisesRegex(ValueError, 'cannot tell.*pass workers='):
      decopt.spmd(lambda x: x, shared_argnums=0)(X)

  def test_a_mesh_that_does_not_divide_the_workers_is_refused(self):
    run = helpers.on_mesh(3)(lambda x: x)
    with self.assertRaisesRegex(
      ValueError, '8 workers do not spread evenly over the 3 devices.*of 8'
    ):
      run(X)
    with self.assertRaisesRegex(ValueError, '2 workers.*3 devices'):
      run(X[:2])

  @parameterized.parameters(0, 9, -1)
  def test_a_mesh_of_more_devices_than_there_are_is_refused(self, devices):
    with self.assertRaisesRegex(
      ValueError, rf'devices={devices}, but jax sees 8 cpu.*jax_num_cpu_devices'
    ):
      decopt.make_mesh(devices)

  def test_unknown_mappings_are_refused(self):
    with self.assertRaisesRegex(
      ValueError, r"'vmpa'; it must be one of .*'vmap', 'unrolled'"
    ):
      decopt.spmd(lambda x: x, mapping='vmpa')
    with self.assertRaisesRegex(ValueError, 'unrolled.*simulation.*a mesh'):
      decopt.spmd(lambda x: x, mapping='unrolled', mesh=decopt.make_mesh(2))

  def test_replicate_needs_a_worker(self):
    with self.assertRaisesRegex(ValueError, 'workers=0; it needs at least 1'):
      decopt.replicate(X, 0)


class StacksTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.tree = {
      'a': jnp.arange(3.0),
      'state': EveryState(
        decopt.Clock.start(4), decopt.Clock.start(6), optax.EmptyState()
      ),
      'b': [jnp.ones((2, 2), jnp.bfloat16), 2.0],
    }

  def _assert_equal(self, first, second):
    jax.tree.map(np.testing.assert_array_equal, first, second)

  @parameterized.parameters(None, 1, 2, 4, 8)
  def test_replicas_are_copies_and_clocks_are_not_copied(self, devices):
    mesh = None if devices is None else decopt.make_mesh(devices)
    stacked = decopt.replicate(self.tree, 8, mesh=mesh)
    self.assertEqual(stacked['a'].shape, (8, 3))
    self.assertEqual(stacked['b'][1].shape, (8,))
    self.assertEqual(stacked['state'].step.count.shape, ())
    for i in (0, 7):
      self._assert_equal(decopt.worker(stacked, i), self.tree)
    self._assert_equal(decopt.average(stacked), self.tree)

  @parameterized.parameters(1, 2, 4, 8)
  def test_placed_arrays_are_where_programs_leave_them(self, devices):
    mesh = decopt.make_mesh(devices)
    stacked = decopt.place(decopt.replicate(self.tree, 8), mesh)
    returned = decopt.spmd(lambda tree: tree, mesh=mesh)(stacked)
    self._assert_equal(returned, stacked)
    for before, after in zip(
      jax.tree.leaves(stacked), jax.tree.leaves(returned), strict=True
    ):
      self.assertTrue(
        before.sharding.is_equivalent_to(after.sharding, before.ndim)
      )

  def test_trees_of_clocks_only_can_be_placed(self):
    clocks = [decopt.Clock.start(1), decopt.Clock.start(2)]
    self._assert_equal(decopt.place(clocks, decopt.make_mesh(4)), clocks)

  def test_averages_are_over_workers(self):
    stacked = {'x': jnp.arange(6.0).reshape(3, 2)}
    self._assert_equal(decopt.average(stacked), {'x': jnp.array([2.0, 3.0])})
    self._assert_equal(decopt.worker(stacked, 1), {'x': jnp.array([2.0, 3.0])})

  def test_a_mesh_takes_devices_by_number_or_by_hand(self):
    chosen = jax.devices()[2:4]
    self.assertEqual(list(decopt.make_mesh(chosen).devices), chosen)
    self.assertEqual(decopt.make_mesh().size, 8)
    mean = decopt.spmd(decopt.mean, mesh=decopt.make_mesh(chosen))(X)
    np.testing.assert_allclose(mean, np.full(8, 3.5))


if __name__ == '__main__':
  absltest.main()
