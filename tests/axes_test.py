"""How the axis of the workers is found, whatever it is made of."""

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized
from jax import lax

import decopt
from decopt import axes
from tests import helpers
from tests import programs

X = np.arange(8.0, dtype=np.float32)


def _bound(execute, axis_name='workers'):
  """The axis that a worker function sees."""
  found = []

  def worker_fn(x):
    found.append(axes.bound_axis(axis_name))
    return x

  jax.eval_shape(execute(worker_fn), X)
  return found[0]


class BoundAxisTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('simulation', 'workers', 8, None, None),
    ('unrolled', 'workers', 8, None, None),
    ('mesh', 'workers', 8, None, None),
    ('mesh_2x4', ('workers by machine', 'workers of a machine'), 8, None, 4),
    ('packed_4x2', 'workers by device', 4, 2, None),
    ('packed_1x8', 'workers by device', 1, 8, None),
    ('pmap', 'workers', 8, None, None),
  )
  def test_says_how_workers_are_laid_out(self, name, devices, local, inner):
    layout = self._testMethodName.removeprefix(
      'test_says_how_workers_are_laid_out_'
    )
    axis = _bound(helpers.EXECUTORS[layout])
    self.assertEqual(axis.name, name)
    self.assertEqual(axis.device_name, name)
    self.assertEqual((axis.devices, axis.local), (devices, local))
    self.assertEqual(axis.inner, inner)
    self.assertEqual(axis.workers, 8)

  def test_an_axis_that_is_given_is_returned(self):
    axis = axes.Axis('rows', 4)
    self.assertIs(_bound(decopt.spmd, axis), axis)

  def test_two_axes_of_a_shard_map_may_be_named_together(self):
    mesh = decopt.make_mesh(8, machines=2)
    pair = mesh.axis_names

    def execute(worker_fn):
      spec = jax.sharding.PartitionSpec(pair)
      return jax.shard_map(
        worker_fn, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False
      )

    self.assertEqual(_bound(execute, pair).workers, 8)
    mixed = execute(lambda x: decopt.mix(x, decopt.ring(8), axis_name=pair))(X)
    np.testing.assert_allclose(mixed, decopt.ring(8).weights[0] @ X, rtol=1e-6)

  def test_what_is_not_bound_gets_advice(self):
    with self.assertRaisesRegex(
      NameError, "no axis named 'people'.*axis_name='people'"
    ):
      _bound(decopt.spmd, 'people')


class MachinesTest(parameterized.TestCase):
  """Two axes of devices act as one, machine by machine."""

  @parameterized.parameters(1, 2, 4, 8)
  def test_workers_are_numbered_machine_by_machine(self, machines):
    mesh = decopt.make_mesh(8, machines=machines)

    def whoami(x):
      outer, inner = axes.machine_pair('workers')
      return [
        decopt.worker_index(),
        x * 0 + decopt.worker_count(),
        lax.axis_index(outer),
        lax.axis_index(inner),
      ]

    index, count, machine, place = decopt.spmd(whoami, mesh=mesh)(X)
    np.testing.assert_array_equal(index, np.arange(8))
    self.assertEqual(index.dtype, jnp.int32)
    np.testing.assert_array_equal(count, np.full(8, 8))
    size = 8 // machines
    np.testing.assert_array_equal(machine, np.arange(8) // size)
    np.testing.assert_array_equal(place, np.arange(8) % size)

  def test_operators_send_between_any_two_workers(self):
    mesh = decopt.make_mesh(8, machines=4)
    topology = helpers.biased(8)
    mixed = decopt.spmd(lambda x: decopt.mix(x, topology), mesh=mesh)(X)
    np.testing.assert_allclose(mixed, topology.weights[0] @ X, rtol=1e-6)

  def test_programs_are_those_of_one_axis(self):
    def worker_fn(x):
      return decopt.mean(x), decopt.mix(x, decopt.ring(8))

    found = [
      programs.Program(helpers.LAYOUTS[name](worker_fn), X).collectives()
      for name in ('mesh', 'mesh_2x4')
    ]
    one, two = [
      sorted((i.name, i.bytes, i.pairs) for i in instructions)
      for instructions in found
    ]
    self.assertEqual(one, two)
    self.assertEqual(
      [name for name, _, _ in two], ['all-reduce', *['collective-permute'] * 2]
    )

  def test_several_workers_on_a_device_forget_the_machines(self):
    mesh = decopt.make_mesh(4, machines=2)
    axis = _bound(lambda fn: decopt.spmd(fn, mesh=mesh))
    self.assertEqual((axis.devices, axis.local, axis.inner), (4, 2, None))

  def test_the_axis_may_have_another_name(self):
    mesh = decopt.make_mesh(8, machines=2, axis_name='people')
    self.assertEqual(
      mesh.axis_names, ('people by machine', 'people of a machine')
    )
    self.assertEqual(axes.of_mesh(mesh.axis_names), 'people')
    for name in ('people', 'workers'):
      mean = decopt.spmd(
        lambda x, name=name: decopt.mean(x, axis_name=name),
        mesh=mesh,
        axis_name=name,
      )
      np.testing.assert_allclose(mean(X), np.full(8, 3.5))


if __name__ == '__main__':
  absltest.main()
