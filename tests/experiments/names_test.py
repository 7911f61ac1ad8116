"""The tables of names: each entry works, and `--list` shows it."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import optax
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from experiments import algorithms
from experiments import errors
from experiments import faults
from experiments import listing
from experiments import optimizers
from experiments import topologies
from experiments import weight_rules
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


DROPS = {'name': 'link_drops', 'probability': 0.5, 'seed': 3}
LEAVE = {'name': 'inactive_workers', 'leave': 0.5, 'rejoin': 0.1, 'seed': 3}
FAULTY = sorted(filter(algorithms.takes_faults, algorithms.ALGORITHMS))


class FaultsTest(parameterized.TestCase):
  def build(self, faults, name='dsgd', /, **arguments):
    section = {'name': name, **arguments}
    return algorithms.build(section, optax.sgd(0.1), decopt.ring(4), faults)

  def run_steps(self, algorithm, steps=6):
    """Returns parameters [steps, workers] that start apart."""

    def train(x):
      def step(carry, _):
        x, state = carry
        updates, state = algorithm.update(jnp.ones_like(x), state, x)
        x = optax.apply_updates(x, updates)
        return (x, state), x

      return jax.lax.scan(step, (x, algorithm.init(x)), length=steps)[1]

    starts = jnp.array([0.0, 1.0, 4.0, 9.0])
    return np.asarray(decopt.spmd(train, workers=4)(starts)).T

  def test_some_algorithms_take_them(self):
    self.assertEqual(
      FAULTY, ['decentralized_local_sgd', 'diffusion', 'dsgd', 'sgp']
    )

  @parameterized.product(
    name=FAULTY,
    faults=[
      {'name': 'none'},
      {'name': 'link_drops', 'probability': 0.1},
      {'name': 'link_bursts', 'fail': 0.1, 'recover': 0.5, 'seed': 3},
      {'name': 'inactive_workers', 'leave': 0.1, 'rejoin': 0.5},
    ],
  )
  def test_every_kind_fits_every_algorithm_that_takes_them(self, name, faults):
    period = {'period': 4} if name == 'decentralized_local_sgd' else {}
    algorithm = self.build(faults, name, **period)
    self.assertEqual(
      decopt.data_dependent_collectives(algorithm, PARAMS, workers=4), []
    )

  def test_they_are_those_of_the_library(self):
    lossy = decopt.link_drops(0.5, seed=3)
    expected = decopt.dsgd(optax.sgd(0.1), decopt.ring(4), faults=lossy)
    found = self.run_steps(self.build(DROPS))
    np.testing.assert_array_equal(found, self.run_steps(expected))
    without = self.run_steps(self.build(None))
    self.assertGreater(np.abs(found - without).max(), 0.1)

  @parameterized.parameters('dsgd', 'diffusion', 'sgp')
  def test_workers_that_are_away_stand_still(self, name):
    found = self.run_steps(self.build(LEAVE, name))
    expected = self.run_steps(self.build(None, name))
    stands = np.diff(found, axis=0) == 0
    self.assertTrue(stands.any())
    self.assertFalse(stands.all())
    self.assertFalse((np.diff(expected, axis=0) == 0).any())

  def test_workers_that_miss_a_meeting_go_on_alone(self):
    found = self.run_steps(
      self.build(LEAVE, 'decentralized_local_sgd', period=3)
    )
    self.assertFalse((np.diff(found, axis=0) == 0).any())

  @parameterized.parameters(
    (DROPS, 'local_sgd', {'period': 4}, "'local_sgd' takes no faults.* dsgd"),
    (DROPS, 'all_reduce_sgd', {}, "but config.faults.name is 'link_drops'"),
    ({'name': 'link_drop'}, 'dsgd', {}, "did you mean 'link_drops'"),
    ({'name': 'link_drops'}, 'dsgd', {}, '--config.faults.probability='),
    ({**DROPS, 'probability': 2}, 'dsgd', {}, 'config.faults: link_drops'),
    ({**DROPS, 'probability': 'a'}, 'dsgd', {}, "is 'a', not a number"),
    ({**DROPS, 'sede': 1}, 'dsgd', {}, "did you mean 'seed'"),
    ({'name': 'none', 'seed': 1}, 'dsgd', {}, "'none' has no argument 'seed'"),
    (None, 'dsgd', {'faults': 1}, "'dsgd' has no argument 'faults'"),
  )
  def test_mistakes_are_one_line(self, faults, name, arguments, advice):
    with self.assertRaisesRegex(errors.UserError, advice) as caught:
      self.build(faults, name, **arguments)
    self.assertNotIn('\n', str(caught.exception))


class ListingTest(absltest.TestCase):
  def test_has_a_line_for_each_name(self):
    lines = [line.strip() for line in listing.listing().splitlines()]
    for table in (
      algorithms.ALGORITHMS,
      topologies.TOPOLOGIES,
      weight_rules.WEIGHTS,
      faults.FAULTS,
      workloads.WORKLOADS,
    ):
      for name, (_, description) in table.items():
        line = next(line for line in lines if line.split(' ')[0] == name)
        self.assertIn(description, line)

  def test_says_which_field_takes_a_name(self):
    lines = listing.listing().splitlines()
    for field in ('topology.weights', 'faults.name', 'optimizer.schedule.name'):
      self.assertIn(f'--config.{field}', lines)

  def test_lines_fit_a_terminal(self):
    self.assertLessEqual(max(map(len, listing.listing().splitlines())), 100)


if __name__ == '__main__':
  absltest.main()
