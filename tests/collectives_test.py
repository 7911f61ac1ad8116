"""`mix` with numbers of one's own, and without what a worker holds itself."""

import jax
import jax.numpy as jnp
import networkx
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from tests import helpers
from tests import lossy
from tests import programs

SWAP = np.kron(np.eye(4), [[0.0, 1.0], [1.0, 0.0]])
TOPOLOGIES = {
  'ring': decopt.ring(8),
  'star': decopt.star(8),
  'complete': decopt.complete(8),
  'one_peer': decopt.one_peer_exponential(8),
  'regular': decopt.metropolis(networkx.random_regular_graph(3, 8, seed=0)),
  'one_way': lossy.changing_digraph(8),
  'alone': decopt.Topology(np.eye(8), 'alone'),
  # Workers have no weight on themselves.
  'swap': decopt.Topology(SWAP, 'swap'),
}
STEPS = 3


def _numbers(topology, step, rng):
  """Random numbers on the links of a round and on the diagonal."""
  weights = rng.normal(size=(8, 8))
  links = topology.weights[step % topology.period] > 0
  return np.where(links | np.eye(8, dtype=bool), weights, 0)


class MixTest(parameterized.TestCase):
  @parameterized.named_parameters(
    helpers.cases(
      TOPOLOGIES,
      helpers.EXECUTORS,
      {'own_weights': True, 'its_weights': False},
    )
  )
  def test_is_the_sum_with_and_without_the_own_share(
    self, topology, execute, given
  ):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(8, 5))
    weights = [_numbers(topology, t, rng) for t in range(STEPS)]

    def run(x):
      results = []
      for own in (True, False):
        for t in range(STEPS):
          clock = decopt.Clock.start(t)
          numbers = jnp.asarray(weights[t]) if given else None
          results.append(
            decopt.mix(
              {'a': x[:4].reshape(2, 2), 'b': x[4]},
              topology,
              step=clock.count,
              weights=numbers,
              own=own,
            )
          )
      return results

    with jax.enable_x64(True):
      results = iter(execute(run)(jnp.asarray(x)))
      for others in (np.ones((8, 8)), 1 - np.eye(8)):
        for t in range(STEPS):
          result = next(results)
          matrix = (
            weights[t] if given else topology.weights[t % topology.period]
          )
          np.testing.assert_allclose(
            np.column_stack([result['a'].reshape(8, 4), result['b']]),
            (matrix * others) @ x,
            rtol=1e-12,
            atol=1e-14,
          )

  @parameterized.named_parameters(helpers.cases(helpers.LAYOUTS))
  def test_numbers_where_there_is_no_link_are_taken_for_zero(self, execute):
    # Otherwise results would depend on how a sum is written.
    rng = np.random.default_rng(0)
    weights = jnp.asarray(rng.normal(size=(8, 8)), jnp.float32)
    x = jnp.asarray(rng.normal(size=(8, 3)), jnp.float32)
    for topology in (decopt.ring(8), decopt.star(8), TOPOLOGIES['swap']):
      links = (topology.weights[0] > 0) | np.eye(8, dtype=bool)
      mix = execute(lambda x, t=topology: decopt.mix(x, t, weights=weights))
      np.testing.assert_allclose(
        mix(x), np.where(links, weights, 0) @ x, rtol=1e-5, atol=1e-6
      )

  @parameterized.named_parameters(
    helpers.cases(
      {name: helpers.LAYOUTS[name] for name in ('simulation', 'packed_4x2')}
    )
  )
  def test_narrow_numbers_are_rounded_once(self, execute):
    topology, rng = helpers.irregular(8), np.random.default_rng(0)
    weights = np.abs(_numbers(topology, 0, rng)).astype(np.float32)
    x = jnp.asarray(rng.normal(size=(8, 500)), jnp.bfloat16)
    result = execute(lambda x: decopt.mix(x, topology, weights=weights))(x)
    self.assertEqual(result.dtype, jnp.bfloat16)
    exact = weights @ np.asarray(x, np.float32)
    error = np.abs(np.asarray(result, np.float32) - exact)
    self.assertTrue((error <= 2**-8 * np.abs(exact) + 1e-5).all())

  def test_weights_of_another_shape_are_refused(self):
    weights = jnp.ones((4, 8))
    with self.assertRaisesRegex(
      ValueError, r'shape \(4, 8\) for 8 workers; it needs \(8, 8\)'
    ):
      decopt.spmd(lambda x: decopt.mix(x, decopt.ring(8), weights=weights))(
        jnp.zeros(8)
      )

  @parameterized.named_parameters(('mesh', 'mesh'), ('packed', 'packed_4x2'))
  def test_weights_change_nothing_of_what_is_sent(self, layout):
    topology, x = decopt.exponential(8), jnp.zeros((8, 5))
    weights = jnp.asarray(topology.weights[0], jnp.float32)

    def sent(**settings):
      mix = helpers.LAYOUTS[layout](
        lambda x: decopt.mix(x, topology, **settings)
      )
      program = programs.Program(mix, x)
      return sorted((i.bytes, i.pairs) for i in program.collectives())

    plain = sent()
    self.assertNotEmpty(plain)
    self.assertEqual(sent(weights=weights), plain)
    self.assertEqual(sent(own=False), plain)


class LengthTest(parameterized.TestCase):
  @parameterized.named_parameters(('simulation', None), ('packed_mesh', 8))
  def test_kernels_of_leaves_are_not_repeated_for_each_round(self, devices):
    def kernels(topology):
      run = decopt.spmd(
        lambda tree, clock: decopt.mix(tree, topology, step=clock.count),
        mesh=devices and decopt.make_mesh(devices),
      )
      tree = {str(k): jnp.zeros((32, k, 2)) for k in range(1, 41)}
      program = programs.Program(run, tree, decopt.Clock.start())
      return program.count('fusion')

    ring, one_peer = decopt.ring(32), decopt.one_peer_exponential(32)
    self.assertGreaterEqual(kernels(ring), 40)
    self.assertLess(kernels(one_peer), 2 * kernels(ring))


if __name__ == '__main__':
  absltest.main()
