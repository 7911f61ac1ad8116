"""The text is Python's own, apart by file, and read only from the left."""

import functools
import pathlib
import tempfile
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest

from experiments import workloads
from experiments.workloads import text
from experiments.workloads import transformer

BUDGET = 300_000


class CorpusTest(absltest.TestCase):
  def test_held_out_text_is_of_other_files(self):
    train, held_out = text.files(BUDGET)
    self.assertGreater(len(train), len(held_out))
    self.assertNotEmpty(held_out)
    self.assertEmpty(set(train) & set(held_out))
    self.assertEqual(sum(map(len, train)) + sum(map(len, held_out)), BUDGET)

  def test_windows_come_from_the_file_of_their_label(self):
    train, held_out = text.files(BUDGET)
    windows, test, labels = text.load(32, BUDGET)
    self.assertEqual(windows.dtype, np.uint8)
    self.assertEqual(windows.shape[1:], (33,))
    for index in range(0, len(windows), 97):
      self.assertIn(windows[index].tobytes(), train[labels[index]])
    for window in test[::7]:
      self.assertTrue(any(window.tobytes() in source for source in held_out))

  def test_the_held_out_set_is_bounded_and_spread(self):
    _, test, _ = text.load(32, 10 * BUDGET)
    self.assertLen(test, 256)
    self.assertLen(np.unique(test, axis=0), 256)

  def test_is_the_same_each_time(self):
    first, again = text.load(16, BUDGET), text.load(16, BUDGET)
    for a, b in zip(first, again, strict=True):
      np.testing.assert_array_equal(a, b)

  def test_windows_predict_each_byte_once(self):
    source = bytes(range(100))
    windows = text.windows(source, 8)
    np.testing.assert_array_equal(windows[:, 1:].ravel(), np.arange(1, 97))
    np.testing.assert_array_equal(windows[:, 0], np.arange(0, 96, 8))

  def test_a_short_file_has_no_window(self):
    self.assertEqual(text.windows(b'', 8).shape, (0, 9))
    self.assertEqual(text.windows(b'12345678', 8).shape, (0, 9))

  def test_a_python_without_source_is_named(self):
    with tempfile.TemporaryDirectory() as folder:
      path = pathlib.Path(folder)
      with mock.patch.object(text, '_folder', return_value=path):
        with self.assertRaisesRegex(ValueError, 'comes with its source'):
          workloads.make({'name': 'text'})


class TransformerTest(absltest.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    module = transformer.Transformer(context=12, width=16, layers=1, heads=4)
    cls.tokens = jax.random.randint(jax.random.key(0), (2, 12), 0, 256)
    init = functools.partial(module.init, train=False)
    variables = jax.jit(init)(jax.random.key(1), cls.tokens)
    apply = functools.partial(module.apply, variables, train=False)
    cls.logits = staticmethod(jax.jit(apply))

  def test_a_byte_changes_no_prediction_before_it(self):
    position = 7
    changed = self.tokens.at[:, position].add(1) % 256
    before, after = self.logits(self.tokens), self.logits(changed)
    np.testing.assert_array_equal(before[:, :position], after[:, :position])
    moved = jnp.any(before[:, position:] != after[:, position:], axis=-1)
    self.assertTrue(jnp.all(moved))

  def test_shorter_sequences_are_prefixes(self):
    np.testing.assert_allclose(
      self.logits(self.tokens[:, :5]),
      self.logits(self.tokens)[:, :5],
      rtol=1e-5,
      atol=1e-6,
    )

  def test_order_matters(self):
    logits = self.logits(self.tokens)[:, -1]
    swapped = self.logits(self.tokens.at[:, :2].set(self.tokens[:, 1::-1]))
    self.assertGreater(jnp.abs(logits - swapped[:, -1]).max(), 1e-6)

  def test_starts_with_about_the_loss_of_a_guess(self):
    workload = workloads.make({'name': 'text', 'corpus_bytes': BUDGET})
    variables = workload.init(jax.random.key(0))
    loss = jax.jit(workload.evaluate)(*variables, workload.test)['loss']
    np.testing.assert_allclose(loss, np.log(256), rtol=0.1)


if __name__ == '__main__':
  absltest.main()
