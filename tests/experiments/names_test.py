"""The tables of names: each entry works, and `--list` shows it."""

import inspect

import jax
import jax.numpy as jnp
import optax
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from experiments import algorithms
from experiments import errors
from experiments import listing
from experiments import optimizers
from experiments import topologies
from experiments import workloads

PARAMS = {'kernel': jnp.ones((4, 8)), 'bias': jnp.zeros(8)}

#: They work, but optax warns that they will change or go.
DEPRECATED = {'noisy_sgd', 'optimistic_adam'}


class OptimizersTest(parameterized.TestCase):
  @parameterized.parameters(
    *sorted(optimizers.optimizers().keys() - DEPRECATED)
  )
  def test_needs_a_name_and_a_learning_rate_only(self, name):
    self.step(name)

  def step(self, name):
    optimizer = optimizers.build({'name': name, 'learning_rate': 0.1}, 10)
    state = jax.eval_shape(optimizer.init, PARAMS)
    updates, _ = jax.eval_shape(optimizer.update, PARAMS, state, PARAMS)
    shapes = jax.tree.map(jnp.shape, PARAMS)
    self.assertEqual(jax.tree.map(lambda leaf: leaf.shape, updates), shapes)

  @parameterized.parameters(*sorted(DEPRECATED))
  def test_what_optax_will_drop_still_works(self, name):
    with self.assertWarns((DeprecationWarning, UserWarning)):
      self.step(name)

  def test_arguments_reach_optax(self):
    section = {'name': 'sgd', 'learning_rate': 1, 'momentum': 0.5}
    ours = optimizers.build(section | {'nesterov': True}, 10)
    theirs = optax.sgd(1, momentum=0.5, nesterov=True)
    for optimizer in (ours, theirs):
      state = optimizer.init(PARAMS)
      updates, state = optimizer.update(PARAMS, state)
      updates, state = optimizer.update(PARAMS, state)
      self.assertEqual(float(updates['kernel'][0, 0]), -1.75)

  def test_clip_norm_bounds_the_gradient(self):
    section = {'name': 'sgd', 'learning_rate': 1.0, 'clip_norm': 0.5}
    optimizer = optimizers.build(section, 10)
    updates, _ = optimizer.update(PARAMS, optimizer.init(PARAMS))
    self.assertAlmostEqual(float(optax.tree.norm(updates)), 0.5, places=5)

  def rate(self, **schedule):
    section = {'name': 'sgd', 'learning_rate': 0.4, 'schedule': schedule}
    return optimizers.learning_rate(section, 100)

  def test_a_schedule_is_filled_in_from_learning_rate_and_steps(self):
    self.assertEqual(self.rate(name='constant'), 0.4)
    cosine = self.rate(name='cosine_decay_schedule')
    self.assertAlmostEqual(float(cosine(0)), 0.4, places=6)
    self.assertAlmostEqual(float(cosine(100)), 0, places=6)
    warm = self.rate(name='warmup_cosine_decay_schedule', warmup_steps=10)
    self.assertAlmostEqual(float(warm(0)), 0, places=6)
    self.assertAlmostEqual(float(warm(10)), 0.4, places=6)

  def test_what_a_schedule_is_given_wins(self):
    linear = self.rate(
      name='linear_schedule', end_value=0.1, transition_steps=10
    )
    self.assertAlmostEqual(float(linear(10)), 0.1, places=6)
    # Keys of JSON are strings.
    steps = self.rate(
      name='piecewise_constant_schedule', boundaries_and_scales={'5': 0.5}
    )
    self.assertAlmostEqual(float(steps(7)), 0.2, places=6)

  def test_a_schedule_that_lacks_an_argument_says_which(self):
    with self.assertRaisesRegex(
      errors.UserError, '--config.optimizer.schedule.decay_rate='
    ):
      self.rate(name='exponential_decay')


class TopologiesTest(parameterized.TestCase):
  @parameterized.product(
    name=list(topologies.TOPOLOGIES), workers=[1, 2, 4, 16]
  )
  def test_exists_for_powers_of_two(self, name, workers):
    topology = topologies.build({'name': name}, workers)
    self.assertEqual(topology.workers, workers)

  def test_a_torus_is_as_square_as_it_can_be(self):
    section = {'name': 'torus'}
    self.assertTrue(
      (
        topologies.build(section, 12).weights == decopt.torus(3, 4).weights
      ).all()
    )
    given = topologies.build(section | {'rows': 6}, 12)
    self.assertTrue((given.weights == decopt.torus(6, 2).weights).all())


class AlgorithmsTest(parameterized.TestCase):
  @parameterized.parameters(*algorithms.ALGORITHMS)
  def test_is_built_from_its_name(self, name):
    builder, _ = algorithms.ALGORITHMS[name]
    period = (
      {'period': 4} if 'period' in inspect.signature(builder).parameters else {}
    )
    algorithm = algorithms.build(
      {'name': name, **period}, optax.sgd(0.1), decopt.ring(4)
    )
    self.assertEqual(
      decopt.data_dependent_collectives(algorithm, PARAMS, workers=4), []
    )

  def test_only_some_talk_to_neighbours(self):
    self.assertTrue(algorithms.needs_topology('dsgd'))
    self.assertFalse(algorithms.needs_topology('local_sgd'))


class ListingTest(absltest.TestCase):
  def test_has_a_line_for_each_name(self):
    lines = [line.strip() for line in listing.listing().splitlines()]
    for table in (
      algorithms.ALGORITHMS,
      topologies.TOPOLOGIES,
      workloads.WORKLOADS,
    ):
      for name, (_, description) in table.items():
        line = next(line for line in lines if line.split(' ')[0] == name)
        self.assertIn(description, line)


if __name__ == '__main__':
  absltest.main()
