"""The digits are read right, split for ever, and normalized as asked."""

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest
from sklearn import datasets

from experiments import workloads
from experiments.workloads import convolution
from experiments.workloads import digits


class DigitsTest(absltest.TestCase):
  def test_holds_the_images_of_scikit_learn_once_each(self):
    train, test = digits.load()
    images = np.concatenate([train['image'], test['image']])
    labels = np.concatenate([train['label'], test['label']])
    pixels, expected = datasets.load_digits(return_X_y=True)
    # Undo the scaling: the darkest and the brightest pixel are 0 and 16.
    low, high = images.min(), images.max()
    images = np.rint(16 * (images - low) / (high - low)).reshape(-1, 64)

    def in_order(images, labels):
      table = np.column_stack([images, labels])
      return table[np.lexsort(table.T)]

    np.testing.assert_array_equal(
      in_order(images, labels), in_order(pixels, expected)
    )

  def test_the_split_never_changes(self):
    train, test = digits.load()
    self.assertEqual(train['image'].shape, (1437, 8, 8, 1))
    self.assertEqual(test['image'].shape, (360, 8, 8, 1))
    self.assertEqual(
      test['label'][:12].tolist(), [5, 0, 0, 0, 1, 3, 6, 5, 6, 6, 3, 6]
    )
    self.assertEqual(train['image'].dtype, np.float32)
    np.testing.assert_allclose(train['image'].mean(), 0, atol=1e-5)
    np.testing.assert_allclose(train['image'].std(), 1, atol=1e-5)

  def test_the_data_cannot_be_changed_by_accident(self):
    train, _ = digits.load()
    with self.assertRaisesRegex(ValueError, 'read-only'):
      train['image'][0] = 0


class BatchStatisticsTest(absltest.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.workload = workloads.make(
      {'name': 'digits', 'model': 'convnet', 'norm': 'batch'}
    )
    cls.params, cls.model_state = cls.workload.init(jax.random.key(0))
    cls.batch = {k: v[:16] for k, v in cls.workload.train.items()}

  def test_move_in_training(self):
    self.assertEqual(list(self.model_state), ['batch_stats'])
    _, after = jax.jit(self.workload.loss)(
      self.params, self.model_state, self.batch, jax.random.key(0)
    )
    jax.tree.map(
      lambda a, b: self.assertTrue(jnp.any(a != b)), self.model_state, after
    )
    kernel = self.params['Conv_0']['kernel']
    features = convolution.convolve(self.batch['image'], kernel)
    expected = 0.1 * features.mean(axis=(0, 1, 2))  # from 0, momentum 0.9
    mean = after['batch_stats']['BatchNorm_0']['mean']
    np.testing.assert_allclose(mean, expected, rtol=1e-4, atol=1e-6)

  def test_are_used_as_they_are_in_evaluation(self):
    @jax.jit
    def evaluate(model_state, batch):
      return self.workload.evaluate(self.params, model_state, batch)['loss']

    one_by_one = [
      evaluate(
        self.model_state, {k: v[i : i + 1] for k, v in self.batch.items()}
      )
      for i in range(16)
    ]
    together = evaluate(self.model_state, self.batch)
    np.testing.assert_allclose(together, np.mean(one_by_one), rtol=1e-5)
    moved = jax.tree.map(lambda x: x + 0.5, self.model_state)
    self.assertGreater(abs(evaluate(moved, self.batch) - together), 1e-3)

  def test_are_absent_without_batch_normalization(self):
    for norm in ('none', 'group'):
      workload = workloads.make(
        {'name': 'digits', 'model': 'convnet', 'norm': norm}
      )
      key = jax.random.key(0)
      params, model_state = jax.eval_shape(workload.init, key)
      self.assertEqual(model_state, {})
      _, after = jax.eval_shape(workload.loss, params, {}, self.batch, key)
      self.assertEqual(after, {})


class ConvNetTest(absltest.TestCase):
  def test_patches_and_native_train_alike(self):
    train, _ = digits.load()
    batch = {k: v[:32] for k, v in train.items()}
    key = jax.random.key(0)

    def workload(method):
      return workloads.make(
        {'name': 'digits', 'model': 'convnet', 'convolution': method}
      )

    params, _ = workload('patches').init(key)

    def gradient(method):
      loss = workload(method).loss
      return jax.jit(jax.grad(loss, has_aux=True))(params, {}, batch, key)[0]

    jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6),
      gradient('patches'),
      gradient('native'),
    )


if __name__ == '__main__':
  absltest.main()
