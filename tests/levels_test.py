"""The exchange by level in all layouts, for all sizes of machines."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from decopt import levels
from tests import helpers
from tests import programs

# Machines of devices that are one, divide, or do not divide those of the
# algorithm.
EXECUTORS = {
  **helpers.EXECUTORS,
  'mesh_1x8': helpers.on_mesh(8, machines=1),
  'mesh_4x2': helpers.on_mesh(8, machines=4),
  'mesh_8x1': helpers.on_mesh(8, machines=8),
  'packed_machines': helpers.on_mesh(4, machines=2),
}
SIZES = (1, 2, 4, 8)


def _expected(x, topology, size, t=0):
  within = np.full((size, size), 1 / size)
  matrix = np.kron(topology.weights[t % topology.period], within)
  return np.tensordot(matrix, x, 1)


def _mix(tree, topology, size, step=0):
  return levels.mix_machines(tree, topology, size, step=step)


class MixMachinesTest(parameterized.TestCase):
  @parameterized.named_parameters(helpers.cases(EXECUTORS))
  def test_is_the_matrix_of_both_levels(self, execute):
    # Leaves that do not divide by the size of a machine, of two dtypes, one of
    # them empty; weights that are not symmetric.
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
      tree = {
        'a': jnp.asarray(rng.normal(size=(8, 3, 5))),
        'b': jnp.asarray(rng.normal(size=(8,))),
        'c': jnp.zeros((8, 0)),
        'd': jnp.asarray(rng.normal(size=(8, 7)), jnp.float32),
      }
      topologies = [helpers.biased(8 // size) for size in SIZES]
      run = execute(lambda tree: list(map(_mix, [tree] * 4, topologies, SIZES)))
      for result, topology, size in zip(
        jax.block_until_ready(run(tree)), topologies, SIZES, strict=True
      ):
        for name, x in tree.items():
          self.assertEqual(result[name].dtype, x.dtype)
          np.testing.assert_allclose(
            result[name],
            _expected(x, topology, size),
            rtol=1e-12 if x.dtype == jnp.float64 else 1e-5,
            atol=1e-12 if x.dtype == jnp.float64 else 1e-6,
            err_msg=f'{name}, machines of {size}',
          )

  @parameterized.named_parameters(
    # Devices, workers of each device, and workers of each machine.
    ('machines_of_three_devices', 6, 2, 6),
    ('three_machines_on_a_device', 4, 6, 2),
    ('machines_of_one_device_and_a_half', 6, 4, 6),
    ('machines_of_two_thirds_of_a_device', 4, 6, 4),
    ('one_machine', 4, 6, 24),
    ('machines_of_one', 4, 6, 1),
  )
  def test_packed_machines_of_any_size(self, devices, local, size):
    workers = devices * local
    topology = decopt.exponential(workers // size)
    x = np.random.default_rng(0).normal(size=(workers, 5))
    with jax.enable_x64(True):
      run = helpers.on_mesh(devices)(lambda x: _mix(x, topology, size))
      np.testing.assert_allclose(
        run(x), _expected(x, topology, size), rtol=1e-12, atol=1e-12
      )

  @parameterized.named_parameters(helpers.cases(helpers.LAYOUTS))
  def test_rounds_of_a_changing_graph_follow_the_step(self, execute):
    topology = decopt.one_peer_exponential(4)
    x = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
    run = execute(
      lambda x, clock: _mix(x, topology, 2, step=clock.count),
    )
    for t in range(3):
      np.testing.assert_allclose(
        run(x, decopt.Clock.start(t)),
        _expected(x, topology, 2, t),
        rtol=1e-5,
        atol=1e-6,
      )

  @parameterized.named_parameters(helpers.cases(helpers.LAYOUTS))
  def test_may_be_differentiated(self, execute):
    topology = helpers.biased(4)
    target = np.random.default_rng(0).normal(size=(8, 3))

    def value(x):
      return jnp.sum(target * execute(lambda x: _mix(x, topology, 2))(x))

    matrix = np.kron(topology.weights[0], np.full((2, 2), 1 / 2))
    with jax.enable_x64(True):
      gradient = jax.grad(value)(jnp.zeros((8, 3)))
    np.testing.assert_allclose(gradient, matrix.T @ target, atol=1e-14)

  @parameterized.parameters('vmap', 'unrolled')
  def test_a_simulation_may_be_mapped_over_seeds(self, mapping):
    topology = decopt.ring(4)
    run = decopt.spmd(lambda x: _mix(x, topology, 2), mapping=mapping)
    seeds = np.random.default_rng(0).normal(size=(3, 8, 2)).astype(np.float32)
    for x, result in zip(seeds, jax.vmap(run)(seeds), strict=True):
      np.testing.assert_allclose(result, run(x), rtol=1e-5, atol=1e-6)

  def test_narrow_numbers_are_summed_in_wide_ones(self):
    # Three thirds of a number in bfloat16 would not give it back.
    topology = decopt.complete(3)
    x = jnp.full((6, 4), 1.0078125, jnp.bfloat16)
    run = decopt.spmd(lambda x: _mix(x, topology, 2))
    np.testing.assert_array_equal(run(x), x)

  @parameterized.parameters(
    itertools.product(('simulation', 'mesh', 'packed_4x2'), (3, 5))
  )
  def test_workers_must_divide_into_machines(self, layout, size):
    run = helpers.LAYOUTS[layout](lambda x: _mix(x, decopt.ring(2), size))
    with self.assertRaisesRegex(
      ValueError, f'workers_per_machine={size}.*8 workers.*divisor of 8'
    ):
      run(np.zeros(8, np.float32))

  def test_the_topology_is_one_of_machines(self):
    run = decopt.spmd(lambda x: _mix(x, decopt.ring(8), 2))
    with self.assertRaisesRegex(
      ValueError, "'ring' of 8 machines.*4 machines of 2.*workers=4"
    ):
      run(np.zeros(8, np.float32))


class ProgramTest(parameterized.TestCase):
  """What is compiled: nothing crosses machines but shares."""

  SIZE = 100
  PARAMS = np.zeros((8, SIZE), np.float32)

  def _collectives(self, execute, topology, size, params=None):
    params = self.PARAMS if params is None else params
    run = execute(lambda x: _mix(x, topology, size))
    return programs.Program(run, params).collectives()

  @parameterized.named_parameters(
    helpers.cases(
      {
        'mesh': (helpers.on_mesh(8), 4),
        'mesh_2x4': (helpers.on_mesh(8, machines=2), 4),
        'mesh_2x4_of_smaller_machines': (helpers.on_mesh(8, machines=2), 2),
      }
    )
  )
  def test_one_worker_a_device_sends_its_share(self, layout):
    execute, size = layout
    neighbours = 8 // size - 1
    found = self._collectives(execute, decopt.complete(8 // size), size)
    share = 4 * self.SIZE // size
    # Of a reduce-scatter it is the result that has the size of a share.
    self.assertCountEqual(
      [(i.name, i.bytes) for i in found],
      [
        ('reduce-scatter', share),
        *[('collective-permute', share)] * neighbours,
        ('all-gather', 4 * self.SIZE),
      ],
    )
    self.assertEqual(sum(i.pairs for i in found), 8 * neighbours)

  @parameterized.parameters(None, 4)
  def test_the_bytes_are_those_of_traffic(self, machines):
    operator = decopt.hierarchical_gossip(decopt.ring(4), 2)
    within, between = decopt.traffic(
      operator, jnp.zeros(self.SIZE), 8
    ).by_level(2)
    found = self._collectives(
      helpers.on_mesh(8, machines=machines), decopt.ring(4), 2
    )
    crossing = sum(i.bytes * i.pairs for i in found) / 8
    self.assertEqual(crossing, 2 * 4 * self.SIZE // 2)
    self.assertEqual(crossing, between.bytes_per_step)
    # Operands: twice what a reduce-scatter returns, half of an all-gather.
    operands = {'reduce-scatter': 2, 'all-gather': 1 / 2}
    staying = sum(operands.get(i.name, 0) * i.bytes for i in found)
    self.assertEqual(staying, 4 * self.SIZE + 4 * self.SIZE // 2)
    self.assertEqual(staying, within.bytes_per_step)

  def test_devices_of_a_packed_machine_sum_first(self):
    # 8 devices of 2 workers, machines of 8: 4 devices, each with its share.
    found = self._collectives(
      helpers.on_mesh(8), decopt.ring(2), 8, np.zeros((16, self.SIZE), 'f')
    )
    [permute] = [i for i in found if i.name == 'collective-permute']
    self.assertEqual((permute.bytes, permute.pairs), (self.SIZE, 8))

  @parameterized.named_parameters(('one', 2), ('two', 1))
  def test_machines_on_a_device_send_one_message_for_all(self, size):
    # Rows of a ring cross devices: one each way, whatever the machine's size.
    found = self._collectives(helpers.on_mesh(4), decopt.ring(8 // size), size)
    self.assertEqual({i.name for i in found}, {'collective-permute'})
    rows = sum(i.pairs * i.bytes // (4 * self.SIZE) for i in found)
    self.assertEqual(rows, 8)

  def test_leaves_travel_in_buckets(self):
    tree = {str(k): np.zeros((8, k + 1), np.float32) for k in range(10)}
    found = self._collectives(helpers.on_mesh(8), decopt.ring(2), 4, tree)
    self.assertLen(found, 3)
    share = 4 * 56 // 4  # 55 numbers and one that pads
    self.assertEqual(sorted(i.bytes for i in found), [share, share, 4 * 56])

  def test_a_changing_graph_communicates_in_one_branch(self):
    run = helpers.on_mesh(8, machines=4)(
      lambda x, c: _mix(x, decopt.one_peer_exponential(4), 2, step=c.count)
    )
    program = programs.Program(run, self.PARAMS, decopt.Clock.start())
    self.assertEqual(program.count('conditional'), 1)
    self.assertEmpty(program.collectives(conditional=False))


if __name__ == '__main__':
  absltest.main()
