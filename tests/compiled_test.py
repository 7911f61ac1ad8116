"""What is compiled: collectives, conditionals, donation, recompilation."""

import collections

import jax
import jax.numpy as jnp
import networkx
import numpy as np
import optax
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from tests import helpers
from tests import programs

MESHES = {
  name: helpers.LAYOUTS[name] for name in ('mesh', 'packed_4x2', 'packed_2x4')
}


def _update_program(execute, transform, params, workers=8):
  """The program of one update, with gradients shaped like the parameters."""
  stacked = decopt.replicate(params, workers)
  state = decopt.spmd(transform.init, workers=workers)(stacked)
  update = execute(lambda g, s, p: transform.update(g, s, p), workers=workers)
  return programs.Program(update, stacked, state, stacked)


def _names(instructions):
  return collections.Counter(i.name for i in instructions)


class ConditionalTest(parameterized.TestCase):
  """A clock keeps a conditional real; a plain counter does not."""

  def _programs(self, operator, execute):
    transform = optax.chain(optax.adam(0.1), decopt.mix_iterates(operator))
    return _update_program(execute, transform, jnp.zeros(5))

  @parameterized.named_parameters(
    helpers.cases(
      {
        'gossip': decopt.gossip(decopt.ring(8)),
        'all_reduce': decopt.all_reduce(),
      },
      MESHES,
    )
  )
  def test_collectives_are_in_a_branch_and_nowhere_else(
    self, operator, execute
  ):
    program = self._programs(decopt.every(operator, 5), execute)
    self.assertEqual(program.count('conditional'), 1)
    self.assertNotEmpty(program.collectives(conditional=True))
    self.assertEmpty(program.collectives(conditional=False))

  @parameterized.named_parameters(
    helpers.cases(
      {
        name: helpers.LAYOUTS[name]
        for name in ('simulation', 'unrolled', 'packed_1x8')
      }
    )
  )
  def test_one_device_takes_one_branch_too(self, execute):
    operator = decopt.every(decopt.gossip(decopt.ring(8)), 5)
    self.assertEqual(self._programs(operator, execute).count('conditional'), 1)

  def test_a_changing_graph_sends_one_round_at_a_time(self):
    operator = decopt.gossip(decopt.one_peer_exponential(8))
    program = self._programs(operator, helpers.LAYOUTS['mesh'])
    self.assertEqual(
      _names(program.collectives(conditional=True)), {'collective-permute': 3}
    )
    self.assertEmpty(program.collectives(conditional=False))

  def test_a_plain_counter_communicates_at_every_step_when_packed(self):
    # Why `every` is ours: the counter of `optax.conditionally_transform` gets a
    # worker axis, and vmap makes a select of the conditional.
    operator = optax.conditionally_transform(
      decopt.gossip(decopt.ring(8)), lambda step: step % 5 == 0
    )
    for name in ('simulation', 'packed_4x2'):
      program = self._programs(operator, helpers.LAYOUTS[name])
      self.assertEqual(program.count('conditional'), 0)
    self.assertNotEmpty(program.collectives(conditional=False))


class GossipProgramTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('ring', decopt.ring(8), 2),
    ('exponential', decopt.exponential(8), 3),
    ('star', decopt.star(8), 7),
    ('torus', decopt.torus(2, 4), 3),
  )
  def test_is_as_many_permutations_as_colours(self, topology, colours):
    transform = decopt.dsgd(optax.adam(0.1), topology)
    params = {'a': jnp.zeros((3, 5)), 'b': [jnp.zeros(4), jnp.zeros(())]}
    program = _update_program(helpers.LAYOUTS['mesh'], transform, params)
    self.assertEqual(
      _names(program.collectives()), {'collective-permute': colours}
    )

  def test_buckets_multiply_them(self):
    # A leaf that travels alone, a bucket of small ones, one of another dtype
    # (not bfloat16, which XLA on CPU sends as float32).
    params = {
      'large': jnp.zeros(300_000),
      'small': [jnp.zeros(n) for n in range(1, 10)],
      'narrow': [jnp.zeros(n, jnp.float16) for n in range(1, 10)],
    }
    transform = decopt.dsgd(optax.sgd(0.1), decopt.ring(8))
    program = _update_program(helpers.LAYOUTS['mesh'], transform, params)
    permutes = program.collectives()
    self.assertEqual(_names(permutes), {'collective-permute': 2 * 3})
    self.assertCountEqual(
      [i.bytes for i in permutes], 2 * [4 * 300_000, 4 * 45, 2 * 45]
    )

  @parameterized.named_parameters(
    ('ring', decopt.ring(8), 2), ('exponential', decopt.exponential(8), 3)
  )
  def test_bytes_are_those_of_traffic_and_of_the_closed_form(
    self, topology, degree
  ):
    params = {'a': jnp.zeros((50, 30)), 'b': jnp.zeros(30)}
    transform = decopt.diffusion(optax.adam(0.1), topology)
    program = _update_program(helpers.LAYOUTS['mesh'], transform, params)
    # A worker sends its operand once for each pair that it is the source of.
    sent = sum(i.bytes * i.pairs for i in program.collectives()) / 8
    self.assertEqual(sent, degree * 4 * 1530)
    self.assertEqual(sent, decopt.traffic(transform, params, 8).bytes_per_step)

  @parameterized.named_parameters(
    # On 4 devices with 4 workers each, numbered device by device.
    ('ring', decopt.ring(16), 8),  # a device hears one row from each side
    ('torus', decopt.torus(4, 4), 32),  # the rows above and below
    ('exponential', decopt.exponential(16), 32),  # all of two other devices
    (
      'random_regular',
      decopt.metropolis(networkx.random_regular_graph(3, 16, seed=0)),
      None,
    ),
    ('star', decopt.star(16), None),
  )
  def test_packed_no_more_rows_cross_than_the_graph_needs(self, topology, rows):
    links = topology.weights[0] > 0
    needed = {
      (sender, receiver // 4)
      for receiver, sender in np.argwhere(links)
      if sender // 4 != receiver // 4
    }
    transform = decopt.dsgd(optax.sgd(0.1), topology)
    program = _update_program(
      helpers.on_mesh(4), transform, jnp.zeros(7), workers=16
    )
    permutes = program.collectives()
    self.assertEqual(set(_names(permutes)), {'collective-permute'})
    crossing = sum(i.pairs * i.bytes // (4 * 7) for i in permutes)
    self.assertEqual(crossing, len(needed))
    if rows is not None:
      self.assertEqual(crossing, rows)

  def test_a_program_traced_for_a_simulation_is_not_reused_on_a_mesh(self):
    # A simulation writes the same mixing as a product with the matrix.
    topology = decopt.complete(8)
    mix = jax.jit(lambda x: decopt.mix(x, topology))
    x = jnp.zeros((8, 3))
    decopt.spmd(lambda x: mix(x))(x)
    program = programs.Program(helpers.LAYOUTS['mesh'](lambda x: mix(x)), x)
    self.assertEqual(_names(program.collectives()), {'collective-permute': 7})

  def test_all_reduce_is_one_all_reduce_for_each_bucket(self):
    params = {'a': jnp.zeros((3, 5)), 'b': [jnp.zeros(4), jnp.zeros(())]}
    for name in ('mesh', 'packed_4x2'):
      program = _update_program(
        helpers.LAYOUTS[name], decopt.all_reduce_sgd(optax.sgd(0.1)), params
      )
      self.assertEqual(_names(program.collectives()), {'all-reduce': 1})


class LoopTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.problem = helpers.LeastSquares()
    self.transform = decopt.decentralized_local_sgd(
      optax.adam(0.1), decopt.one_peer_exponential(8), 2
    )

  def _start(self, layout):
    meshes = {
      'mesh': (8, None),
      'mesh_2x4': (8, 2),
      'packed_4x2': (4, None),
      'packed_2x4': (2, None),
      'packed_1x8': (1, None),
    }
    devices, machines = meshes.get(layout, (None, None))
    mesh = decopt.make_mesh(devices, machines=machines) if devices else None
    params = decopt.replicate(
      {'kernel': jnp.ones(3), 'bias': jnp.zeros(())}, 8, mesh=mesh
    )
    return params, helpers.LAYOUTS[layout](self.transform.init)(params)

  @parameterized.parameters(*helpers.LAYOUTS)
  def test_compiles_once(self, layout):
    params, state = self._start(layout)
    batches = [self.problem.batch(t) for t in range(5)]
    step = helpers.LAYOUTS[layout](helpers.worker_step(self.transform))
    with jax.log_compiles(), self.assertLogs('jax', 'WARNING') as logs:
      params, state = step(params, state, batches[0])
    self.assertIn('compil', ''.join(logs.output).lower())
    with jax.log_compiles(), self.assertNoLogs('jax', 'WARNING'):
      for batch in batches[1:]:
        params, state = jax.block_until_ready(step(params, state, batch))

  @parameterized.parameters(*helpers.LAYOUTS)
  def test_donated_arguments_are_given_up(self, layout):
    batch = self.problem.batch(0)
    step = helpers.worker_step(self.transform)
    execute = helpers.LAYOUTS[layout]
    kept = execute(step)(*self._start(layout), batch)
    params, state = self._start(layout)
    donated = execute(step, donate_argnums=(0, 1))(params, state, batch)
    jax.tree.map(np.testing.assert_array_equal, donated, kept)
    self.assertTrue(all(x.is_deleted() for x in jax.tree.leaves(params)))
    self.assertTrue(all(x.is_deleted() for x in jax.tree.leaves(state)))
    self.assertFalse(any(x.is_deleted() for x in jax.tree.leaves(batch)))


if __name__ == '__main__':
  absltest.main()
