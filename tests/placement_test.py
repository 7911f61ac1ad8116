"""Meshes: which devices, in which order, along which axes."""

from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from decopt import device_order
from decopt import placement
from tests import device_order_test

X = np.arange(8.0, dtype=np.float32)


def _grid(seen, **options):
  """The devices of `make_mesh`, in their order, if jax saw others than ours."""
  with (
    mock.patch.object(jax, 'devices', return_value=seen),
    mock.patch.object(placement, 'Mesh', lambda grid, *_, **__: grid),
  ):
    return decopt.make_mesh(**options)


class MakeMeshTest(parameterized.TestCase):
  def test_has_one_axis_or_one_of_machines_and_one_of_their_grid(self):
    mesh = decopt.make_mesh(8)
    self.assertEqual(mesh.axis_names, ('workers',))
    mesh = decopt.make_mesh(6, machines=3)
    self.assertEqual(
      mesh.axis_names, ('workers by machine', 'workers of a machine')
    )
    self.assertEqual(mesh.devices.shape, (3, 2))
    self.assertEqual(mesh.devices.ravel().tolist(), jax.devices()[:6])

  def test_devices_by_hand_stay_in_their_order(self):
    chosen = [jax.devices()[i] for i in (3, 0, 2, 1)]
    self.assertEqual(decopt.make_mesh(chosen).devices.tolist(), chosen)
    mesh = decopt.make_mesh(tuple(chosen), machines=2)
    self.assertEqual(mesh.devices.tolist(), [chosen[:2], chosen[2:]])

  def test_devices_are_ordered_by_their_wires(self):
    chips = device_order_test.chips((4, 2, 1))
    self.assertEqual(_grid(chips).tolist(), device_order.ring_order(chips))
    self.assertEqual(
      _grid(chips, torus=(2, 4)).tolist(),
      device_order.torus_order(chips, 2, 4),
    )
    self.assertEqual(
      _grid(chips, machines=2).ravel().tolist(),
      device_order.machine_order(chips),
    )

  def test_a_number_takes_as_many_devices_of_each_process(self):
    gpus = [device_order_test.Gpu(i, process_index=i // 4) for i in range(8)]
    # Where that does not divide, the first ones.
    for number, expected in ((4, [0, 1, 4, 5]), (3, [0, 1, 2])):
      ids = [device.id for device in _grid(gpus, devices=number)]
      self.assertEqual(ids, expected)

  def test_a_machine_is_a_process(self):
    gpus = [device_order_test.Gpu(i, process_index=i % 2) for i in range(8)]
    grid = _grid(gpus, machines=2)
    self.assertEqual(
      [[device.process_index for device in row] for row in grid],
      [[0] * 4, [1] * 4],
    )

  @parameterized.parameters(3, 0, -2, 16)
  def test_machines_must_divide_the_grid(self, machines):
    with self.assertRaisesRegex(
      ValueError, rf'machines={machines} for 8 devices.*divisor'
    ):
      decopt.make_mesh(8, machines=machines)

  def test_a_torus_has_a_place_for_each_device(self):
    with self.assertRaisesRegex(
      ValueError, r'torus=\(4, 4\) for 8 devices.*k workers on each device'
    ):
      decopt.make_mesh(8, torus=(4, 4))

  def test_a_torus_and_an_order_exclude_each_other(self):
    with self.assertRaisesRegex(ValueError, 'machines and torus.*Leave out'):
      decopt.make_mesh(8, machines=2, torus=(2, 4))
    with self.assertRaisesRegex(ValueError, 'a list of devices.*keeps'):
      decopt.make_mesh(jax.devices(), torus=(2, 4))


class TwoAxesTest(parameterized.TestCase):
  """Arrays on a mesh of machines."""

  @parameterized.parameters((8, 2), (8, 8), (8, 1), (4, 2))
  def test_placed_arrays_are_where_programs_leave_them(self, devices, machines):
    mesh = decopt.make_mesh(devices, machines=machines)
    tree = {'x': jnp.arange(3.0), 'clock': decopt.Clock.start(2)}
    stacked = decopt.replicate(tree, 8, mesh=mesh)
    returned = decopt.spmd(lambda tree: tree, mesh=mesh)(stacked)
    for before, after in zip(
      jax.tree.leaves(stacked), jax.tree.leaves(returned), strict=True
    ):
      np.testing.assert_array_equal(before, after)
      self.assertTrue(
        before.sharding.is_equivalent_to(after.sharding, before.ndim)
      )

  def test_each_worker_lies_on_its_device(self):
    mesh = decopt.make_mesh(8, machines=2)
    x = decopt.place(X, mesh)
    for shard in x.addressable_shards:
      [machine], [place] = np.nonzero(mesh.devices == shard.device)
      np.testing.assert_array_equal(shard.data, [4 * machine + place])

  def test_trees_of_clocks_can_be_placed(self):
    clock = decopt.place(decopt.Clock.start(3), decopt.make_mesh(8, machines=2))
    self.assertEqual(clock.count, 3)


if __name__ == '__main__':
  absltest.main()
