"""What holds for every workload, and how one is made from a config."""

import functools
import inspect
import subprocess
import sys

import jax
import jax.numpy as jnp
import ml_collections
import numpy as np
import optax
from absl.testing import absltest
from absl.testing import parameterized

from experiments import workloads
from experiments.workloads import base

CONFIGS = {
  'mlp': {'name': 'digits'},
  'convnet': {'name': 'digits', 'model': 'convnet'},
  'group_norm': {'name': 'digits', 'model': 'convnet', 'norm': 'group'},
  'batch_norm': {'name': 'digits', 'model': 'convnet', 'norm': 'batch'},
  'transformer': {
    'name': 'text',
    'context': 16,
    'width': 16,
    'layers': 1,
    'heads': 2,
    'corpus_bytes': 300_000,
  },
}
CASES = tuple((name, name) for name in CONFIGS)
KINDS = (('mlp', 'mlp'), ('batch_norm',) * 2, ('transformer',) * 2)


@functools.cache
def make(case):
  """One workload for all tests of a process, so that it compiles once."""
  return workloads.make(CONFIGS[case])


def rows(data, selection):
  return {field: array[selection] for field, array in data.items()}


def worker(tree, index):
  return jax.tree.map(lambda x: x[index], tree)


class WorkloadTest(parameterized.TestCase):
  @parameterized.named_parameters(*CASES)
  def test_fields_agree_with_the_labels(self, case):
    workload = make(case)
    self.assertEqual(workload.name, CONFIGS[case]['name'])
    self.assertEqual(workload.labels.shape, (workload.examples,))
    self.assertEqual(workload.labels.dtype, np.int32)
    for field, array in workload.train.items():
      self.assertLen(array, workload.examples)
      self.assertEqual(array.shape[1:], workload.test[field].shape[1:])
      self.assertEqual(array.dtype, workload.test[field].dtype)

  @parameterized.named_parameters(*KINDS)
  def test_starts_from_the_key_alone(self, case):
    first, again, other = (
      make(case).init(jax.random.key(seed)) for seed in (3, 3, 4)
    )
    jax.tree.map(np.testing.assert_array_equal, first, again)
    differ = jax.tree.map(lambda a, b: bool(jnp.any(a != b)), first, other)
    self.assertTrue(any(jax.tree.leaves(differ)))
    for tree in first:
      self.assertIs(type(tree), dict)
      jax.tree.map(lambda x: self.assertEqual(x.dtype, jnp.float32), tree)

  @parameterized.named_parameters(*CASES)
  def test_loss_falls_in_a_few_steps(self, case):
    workload = make(case)
    variables = workload.init(jax.random.key(0))
    optimizer = optax.adam(1e-2)
    batch = rows(workload.train, slice(32))

    def step(carry, key):
      params, model_state, state = carry
      gradient = jax.value_and_grad(workload.loss, has_aux=True)
      (loss, model_state), g = gradient(params, model_state, batch, key)
      updates, state = optimizer.update(g, state)
      return (optax.apply_updates(params, updates), model_state, state), loss

    @jax.jit
    def train(params, model_state):
      carry = params, model_state, optimizer.init(params)
      return jax.lax.scan(step, carry, jax.random.split(jax.random.key(1), 15))

    _, losses = train(*variables)
    self.assertLess(losses[-1], 0.75 * losses[0])

  @parameterized.named_parameters(*KINDS)
  def test_maps_over_workers(self, case):
    workload = make(case)
    variables = [workload.init(jax.random.key(seed)) for seed in (0, 1)]
    batches = [rows(workload.train, slice(a, a + 5)) for a in (0, 5)]
    key = jax.random.key(2)

    def both(variables, batch):
      loss = workload.loss(*variables, batch, key)
      return loss, workload.evaluate(*variables, batch)

    stacked = jax.tree.map(lambda *x: jnp.stack(x), *variables)
    batch = jax.tree.map(lambda *x: jnp.stack(x), *batches)
    mapped = jax.jit(jax.vmap(both))(stacked, batch)
    alone = jax.jit(both)
    for index in range(2):
      jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5),
        worker(mapped, index),
        alone(variables[index], batches[index]),
      )

  @parameterized.named_parameters(*KINDS)
  def test_evaluates_all_held_out_examples_at_once(self, case):
    workload = make(case)
    variables = workload.init(jax.random.key(0))
    metrics = jax.jit(workload.evaluate)(*variables, workload.test)
    self.assertEqual(metrics.keys(), {'loss', 'accuracy'})
    for value in metrics.values():
      self.assertEqual((value.shape, value.dtype), ((), jnp.float32))
    self.assertBetween(metrics['accuracy'], 0, 0.5)  # it has learned nothing
    self.assertBetween(metrics['loss'], 1, 7)


class MakeTest(parameterized.TestCase):
  def test_takes_a_config_with_its_partition(self):
    config = ml_collections.ConfigDict(
      {'name': 'digits', 'hidden': 16, 'partition': 'dirichlet', 'alpha': 0.5}
    )
    params, _ = workloads.make(config).init(jax.random.key(0))
    self.assertEqual(params['Dense_0']['kernel'].shape, (64, 16))

  @parameterized.named_parameters(
    (
      'workload',
      {'name': 'digit'},
      "no workload 'digit'; did you mean 'digits'",
    ),
    ('no_name', {'hidden': 3}, 'no name; give one of digits, text'),
    (
      'field',
      {'name': 'digits', 'hiden': 3},
      "no digits field 'hiden'; did you mean 'hidden'",
    ),
    ('model', {'name': 'digits', 'model': 'mpl'}, "did you mean 'mlp'"),
    (
      'norm',
      {'name': 'digits', 'model': 'convnet', 'norm': 'bach'},
      "did you mean 'batch'",
    ),
    ('norm_of_the_mlp', {'name': 'digits', 'norm': 'batch'}, "model='convnet'"),
    (
      'convolution',
      {'name': 'digits', 'convolution': 'patch'},
      "did you mean 'patches'",
    ),
    ('hidden', {'name': 'digits', 'hidden': 0}, 'workload.hidden is 0'),
    ('channels', {'name': 'digits', 'channels': (8,) * 4}, 'one to three'),
    (
      'heads',
      {'name': 'text', 'width': 20, 'heads': 8},
      'width is 20, .* use width=24',
    ),
    ('layers', {'name': 'text', 'layers': -1}, 'workload.layers is -1'),
  )
  def test_a_mistake_gets_a_line_that_helps(self, config, message):
    with self.assertRaisesRegex(ValueError, message):
      workloads.make(config)

  def test_a_count_must_be_a_whole_number(self):
    with self.assertRaisesRegex(TypeError, "hidden is '64', of type str"):
      workloads.make({'name': 'digits', 'hidden': '64'})
    with self.assertRaisesRegex(TypeError, r'channels is 8; .* \(16, 32\)'):
      workloads.make({'name': 'digits', 'channels': 8})

  def test_each_workload_has_a_line_and_defaults(self):
    for factory, description in workloads.WORKLOADS.values():
      for field in inspect.signature(factory).parameters.values():
        self.assertIsNot(field.default, inspect.Parameter.empty)
      self.assertLess(len(description), 60)

  def test_import_is_light(self):
    program = (
      'import sys, experiments.workloads;'
      'print(sorted({"flax", "sklearn", "scipy"} & set(sys.modules)))'
    )
    done = subprocess.run(
      [sys.executable, '-c', program],
      capture_output=True,
      text=True,
      check=True,
    )
    self.assertEqual(done.stdout.strip(), '[]')


class InvariantTest(absltest.TestCase):
  def test_labels_must_cover_the_examples(self):
    data = {'x': np.zeros((3, 1))}
    with self.assertRaisesRegex(ValueError, "2 labels but 3 .* 'x'"):
      base.Workload('toy', data, data, np.zeros(2, int), None, None, None)

  def test_train_and_test_must_have_the_same_fields(self):
    train, test = {'x': np.zeros(3)}, {'y': np.zeros(3)}
    with self.assertRaisesRegex(
      ValueError, r"\['x'\] but is tested on \['y'\]"
    ):
      base.Workload('toy', train, test, np.zeros(3, int), None, None, None)


if __name__ == '__main__':
  absltest.main()
