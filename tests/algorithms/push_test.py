"""Stochastic gradient push: where it ends, and what it asks of the graph."""

import functools

import jax
import numpy as np
import optax
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from tests import helpers
from tests import lossy
from tests import oracle

GRAPHS = {
  'fixed': (lossy.digraph(8), None),
  'changing': (lossy.changing_digraph(8), None),
  'random': (decopt.random_out_degree(8, 2, seed=1), None),
  'faults': (decopt.lazy(lossy.digraph(8)), decopt.link_drops(0.1)),
}


def _train(transform, problem, steps):
  """[workers, d] parameters after so many steps with the full gradient."""

  step = helpers.worker_step(transform)

  def train(params, batch):
    start = params, transform.init(params)
    return jax.lax.scan(
      lambda carry, _: (step(*carry, batch), None), start, length=steps
    )[0][0]

  with jax.enable_x64(True):
    params = decopt.spmd(train)(problem.params(), problem.batch(0))
    return problem.flat(params)


class ConvergenceTest(parameterized.TestCase):
  @parameterized.named_parameters(helpers.cases(GRAPHS))
  def test_stops_at_a_floor_in_proportion_to_the_step_size(self, graph):
    topology, faults = graph
    problem = helpers.LeastSquares(batches=1)
    floors = []
    for rate in (0.02, 0.005):
      transform = decopt.sgp(optax.sgd(rate), topology, faults=faults)
      x = _train(transform, problem, round(100 / rate))
      floors.append(np.linalg.norm(x - problem.optimum(), axis=1).max())
    self.assertLess(floors[1], 0.1)
    self.assertGreater(floors[0] / floors[1], 3)

  def test_without_the_bias_removed_it_ends_elsewhere(self):
    # The same links with the weights of receivers: some workers count more.
    problem = helpers.LeastSquares(batches=1)
    topology = decopt.row_stochastic(lossy.digraph(8))
    gossip = decopt.mix_iterates(decopt.gossip(topology))
    x = _train(optax.chain(optax.sgd(0.005), gossip), problem, 20_000)
    distances = np.linalg.norm(x - problem.optimum(), axis=1)
    self.assertGreater(distances.min(), 0.2)

  def test_momentum_on_links_that_are_one_way_in_turn(self):
    problem, topology = helpers.LeastSquares(batches=1), GRAPHS['changing'][0]
    transform = decopt.sgp(optax.sgd(0.005, momentum=0.5), topology)
    x = _train(transform, problem, 20_000)
    adapt = oracle.momentum(0.005, 0.5)
    expected = oracle.sgp(
      problem.start,
      problem.gradient,
      adapt,
      steps=20_000,
      weights=topology.weights,
    )
    np.testing.assert_allclose(x, expected, rtol=1e-7)


class RandomGraphsTest(parameterized.TestCase):
  @parameterized.named_parameters(
    helpers.cases({'sgd': 'sgd', 'momentum': 'momentum', 'adam': 'adam'})
  )
  def test_follows_the_paper_on_any_links(self, name):
    optimizer, problem = helpers.OPTIMIZERS[name], helpers.LeastSquares()
    graphs = {
      seed: decopt.alternate(
        decopt.random_out_degree(8, 2, seed=seed),
        decopt.random_out_degree(8, 3, seed=100 + seed),
        decopt.column_stochastic(decopt.ring(8, directed=True)),
      )
      for seed in range(4)
    }
    with jax.enable_x64(True):
      results = helpers.run(
        decopt.spmd,
        {
          seed: decopt.sgp(optimizer.optax, graph)
          for seed, graph in graphs.items()
        },
        problem,
      )
    for seed, graph in graphs.items():
      expected = oracle.sgp(
        problem.start,
        problem.gradient,
        optimizer.oracle(),
        steps=helpers.STEPS,
        weights=graph.weights,
      )
      np.testing.assert_allclose(results[seed], expected, rtol=1e-9)


class RequirementsTest(parameterized.TestCase):
  def test_columns_must_sum_to_one_and_all_must_be_reached(self):
    build = functools.partial(decopt.sgp, optax.sgd(0.1))
    with self.assertRaisesRegex(ValueError, 'sgp needs.*columns sum to 1'):
      build(decopt.row_stochastic(lossy.digraph(8)))
    with self.assertRaisesRegex(ValueError, 'sgp needs a connected graph'):
      build(decopt.Topology(np.eye(4), 'islands'))
    with self.assertRaisesRegex(TypeError, 'sgp needs a decopt.Topology'):
      build(np.eye(4))


if __name__ == '__main__':
  absltest.main()
