"""Mixing on one device: the numbers, and one program for all rounds."""

import jax.numpy as jnp
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from decopt import axes
from decopt import one_device
from tests import programs

#: Two rounds of degree 1, then the pairs rest.
PAIRS = np.kron(np.eye(16), [[0.5, 0.5], [0.5, 0.5]])
SHIFTED = np.roll(PAIRS, (1, 1), axis=(0, 1))
TOPOLOGIES = {
  'ring': decopt.ring(32),
  'one_peer': decopt.one_peer_exponential(32),
  'small': decopt.one_peer_exponential(5),
  'base': decopt.base_graph(30, 2),
  'matchings': decopt.random_matchings(32),
  'resting': decopt.Topology([PAIRS, SHIFTED, np.eye(32)], 'resting'),
  'mixed': decopt.alternate(decopt.ring(32), decopt.complete(32)),
  'unlike': decopt.alternate(
    decopt.one_peer_exponential(64), decopt.torus(8, 8)
  ),
}


def _mixed(topology, mapping='vmap'):
  def worker(x, clock):
    return decopt.mix(x, topology, step=clock.count)

  return decopt.spmd(worker, workers=topology.workers, mapping=mapping)


class NumbersTest(parameterized.TestCase):
  @parameterized.product(name=list(TOPOLOGIES), mapping=['vmap', 'unrolled'])
  def test_each_round_is_a_product_with_its_weights(self, name, mapping):
    topology = TOPOLOGIES[name]
    x = np.random.default_rng(0).normal(size=(topology.workers, 2, 3))
    x = x.astype(np.float32)
    run = _mixed(topology, mapping)
    for t in range(topology.period + 2):
      weights = topology.weights[t % topology.period]
      np.testing.assert_allclose(
        run(x, decopt.Clock.start(t)),
        np.tensordot(weights, x, 1),
        rtol=1e-5,
        atol=1e-6,
      )


class ProgramTest(parameterized.TestCase):
  @parameterized.parameters('one_peer', 'small', 'base', 'matchings', 'resting')
  def test_rounds_share_one_program(self, name):
    self.assertEqual(self._program(name).count('conditional'), 0)

  @parameterized.parameters('mixed', 'unlike')
  def test_rounds_that_differ_in_kind_or_much_in_degree_do_not(self, name):
    self.assertEqual(self._program(name).count('conditional'), 1)

  def test_a_product_with_all_is_kept_to_nearly_complete_graphs(self):
    with axes.executed_as('simulation'):
      self.assertIs(
        one_device.of_any_round(decopt.complete(9)), one_device.dense
      )
      self.assertIs(
        one_device.of_any_round(decopt.ring(32)), one_device.gathered
      )

  def _program(self, name):
    topology = TOPOLOGIES[name]
    x = jnp.zeros((topology.workers, 4))
    return programs.Program(_mixed(topology), x, decopt.Clock.start())


if __name__ == '__main__':
  absltest.main()
