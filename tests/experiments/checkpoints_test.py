"""Checkpoints: what goes in comes out, and what is damaged does not."""

import pathlib
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from experiments import checkpoints
from experiments import errors

FIELDS = {'steps': 9, 'layout': 'simulation', 'devices': 0}


def state(value=1.0, mesh=None):
  """A stacked state with a leaf of each kind."""
  stacked = {
    'float': jnp.full((4, 3), value),
    'bfloat16': jnp.full((4, 2), value, jnp.bfloat16),
    'empty': jnp.zeros((4, 0)),
    'key': jax.random.split(jax.random.key(int(value)), 4),
    'clock': decopt.Clock.start(int(value)),
    'a/b': [jnp.arange(4), jnp.arange(4) > 1],
  }
  return stacked if mesh is None else decopt.place(stacked, mesh)


def words(tree):
  return jax.tree.map(
    lambda x: np.asarray(
      jax.random.key_data(x)
      if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)
      else x
    ),
    tree,
  )


class CheckpointsTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    folder = self.enter_context(tempfile.TemporaryDirectory())
    self.directory = pathlib.Path(folder) / 'checkpoints'

  def save(self, *steps, fields=FIELDS):
    for step in steps:
      checkpoints.save(self.directory, state(step), {'step': step}, fields)

  def restore(self, like=None, fields=FIELDS):
    like = state(0) if like is None else like
    return checkpoints.restore(self.directory, like, fields)

  def assert_restores(self, step, notes=()):
    restored, progress, found = self.restore()
    self.assertEqual(progress, {'step': step})
    jax.tree.map(
      np.testing.assert_array_equal, words(restored), words(state(step))
    )
    self.assertLen(found, len(notes))
    for note, expected in zip(found, notes, strict=True):
      self.assertRegex(note, expected)

  def test_every_kind_of_leaf_survives(self):
    self.save(3)
    self.assert_restores(3)

  def test_without_any_the_fresh_state_is_returned(self):
    fresh = state(0)
    restored, progress, notes = self.restore(fresh)
    self.assertIs(restored, fresh)
    self.assertIsNone(progress)
    self.assertEqual(notes, [])

  def test_the_newest_three_are_kept(self):
    self.save(1, 2, 3, 4, 5)
    self.assertEqual(checkpoints.steps(self.directory), [3, 4, 5])
    self.assert_restores(5)

  def test_moves_between_layouts(self):
    self.save(3)
    mesh = decopt.make_mesh(4)
    like = state(0, mesh)
    moved, _, _ = self.restore(like, FIELDS | {'layout': 'mesh', 'devices': 4})
    self.assertEqual(moved['float'].sharding, like['float'].sharding)
    checkpoints.save(self.directory, moved, {'step': 4}, FIELDS)
    jax.tree.map(
      np.testing.assert_array_equal, words(self.restore()[0]), words(state(3))
    )

  def test_one_that_was_being_written_does_not_count(self):
    self.save(1)
    (self.directory / '.partial-2').mkdir()
    (self.directory / '.partial-2' / 'manifest.json').write_text('{')
    self.assert_restores(1)
    self.save(2)
    self.assertFalse((self.directory / '.partial-2').exists())

  def manifest(self, step):
    return self.directory / str(step) / 'manifest.json'

  def largest_file(self, step):
    files = (self.directory / str(step) / 'arrays' / 'd').iterdir()
    return max(files, key=lambda path: path.stat().st_size)

  def test_damage_of_any_kind_falls_back(self):
    self.save(1, 2, 3)
    path = self.largest_file(3)
    path.write_bytes(path.read_bytes()[:-1])
    self.assert_restores(2, [r'checkpoint 3 .*its file .* is changed.* to 2'])
    self.largest_file(2).unlink()
    self.assert_restores(1, ['3 .* is changed', '2 .* is missing'])

  @parameterized.parameters('', '{"progress": {', '{}', '[]')
  def test_a_broken_manifest_falls_back(self, contents):
    self.save(1, 2)
    self.manifest(2).write_text(contents)
    self.assert_restores(1, ['checkpoint 2 cannot be used'])

  def test_one_of_another_config_falls_back(self):
    self.save(1)
    self.save(2, fields=FIELDS | {'steps': 7})
    self.assert_restores(1, ['another config: steps is 7 there and 9 here'])

  def test_one_of_another_model_falls_back(self):
    self.save(1)
    checkpoints.save(
      self.directory, {'float': jnp.ones((4, 5))}, {'step': 2}, FIELDS
    )
    self.assert_restores(1, ["it is of another state: .'a/b'..0. is absent"])

  def test_if_none_can_be_used_nothing_is_deleted(self):
    self.save(1, 2)
    for step in (1, 2):
      self.manifest(step).unlink()
    with self.assertRaisesRegex(
      errors.UserError, r'none of the checkpoints in .* \(2: .*; 1: '
    ):
      self.restore()
    self.assertEqual(checkpoints.steps(self.directory), [1, 2])

  def test_unusable_ones_neither_block_nor_count(self):
    self.save(1, 2, 3, 4, 5)
    for step in (4, 5):
      self.manifest(step).unlink()
    self.assert_restores(3, ['5', '4'])
    self.save(4)
    self.assert_restores(4, ['checkpoint 5'])
    self.assertTrue((self.directory / '4.unused-1').is_dir())
    self.assertEqual(checkpoints.steps(self.directory), [3, 4, 5])


if __name__ == '__main__':
  absltest.main()
