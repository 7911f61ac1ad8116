"""Files of a run: whole or absent, and never lost."""

import json
import pathlib
import resource
import tempfile

from absl.testing import absltest

from experiments import errors
from experiments import loop
from experiments import run_directory
from experiments import tensorboard
from tests.experiments import small


class RunDirectoryTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    folder = self.enter_context(tempfile.TemporaryDirectory())
    self.folder = pathlib.Path(folder)
    self.directory = run_directory.RunDirectory(
      self.folder / 'run', small.fields()
    )

  def test_a_new_directory_gets_the_config_under_its_lock(self):
    self.directory.check()
    with self.directory.locked():
      saved = json.loads(self.directory.config.read_text())
    self.assertEqual(saved, small.fields())
    self.directory.check()

  def test_what_a_kill_before_the_config_left_is_no_obstacle(self):
    self.directory.path.mkdir()
    (self.directory.path / 'lock').write_text('process 1')
    (self.directory.path / '.config.json.partial').write_text('{"ste')
    with self.directory.locked():
      self.assertTrue(self.directory.config.exists())

  def test_a_file_is_no_directory(self):
    self.directory.path.write_text('mine')
    with self.assertRaisesRegex(errors.UserError, 'is a file'):
      self.directory.check()

  def test_a_config_that_is_no_json_is_named(self):
    self.directory.path.mkdir()
    self.directory.config.write_text('{"steps": ')
    with self.assertRaisesRegex(errors.UserError, 'config.json is not valid'):
      self.directory.check()

  def test_rewinding_keeps_complete_lines_up_to_a_step(self):
    self.directory.path.mkdir()
    for step in (10, 20, 30):
      self.directory.append_metrics({'step': step})
    with open(self.directory.metrics, 'a') as file:
      file.write('{"step": 4')
    self.assertEqual(self.directory.rewind(20), [{'step': 10}, {'step': 20}])
    self.assertEqual(
      self.directory.metrics.read_text(), '{"step": 10}\n{"step": 20}\n'
    )

  def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(self):
    path = self.folder / 'summary.json'
    run_directory.write_json(path, {'steps': 1})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
      with self.assertRaises(OSError) as caught:
        run_directory.write_json(path, {'steps': 'x' * 1000})
    finally:
      resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    self.assertEqual(caught.exception.filename, str(path))
    self.assertEqual(json.loads(path.read_text()), {'steps': 1})
    self.assertEqual(list(self.folder.iterdir()), [path])

  def test_a_full_disk_for_metrics_is_one_line(self):
    self.directory.path.mkdir()
    self.directory.saved_step = 40
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, hard))
    try:
      with self.assertRaisesRegex(
        errors.UserError,
        r'cannot write .*metrics.jsonl: .* Last good checkpoint: step 40 .*'
        'the disk is full: make room, and the same command continues',
      ):
        with loop.explained(self.directory):
          self.directory.append_metrics({'step': 10})
          self.directory.append_metrics({'step': 20})
    finally:
      resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    self.assertEqual(self.directory.rewind(20), [{'step': 10}])

  def test_errors_of_other_files_keep_their_traceback(self):
    with self.assertRaises(FileNotFoundError):
      with loop.explained(self.directory):
        open('/nowhere/at/all')


class TensorBoardTest(absltest.TestCase):
  def test_events_hold_the_numbers_and_void_what_comes_again(self):
    folder = self.enter_context(tempfile.TemporaryDirectory())
    writer = tensorboard.Writer(pathlib.Path(folder), step=20)
    writer.scalars({'step': 30, 'loss': 0.5})
    writer.close()
    (path,) = pathlib.Path(folder).iterdir()
    version, start, event = events(path)
    self.assertEqual(version.file_version, 'brain.Event:2')
    self.assertEqual((start.step, start.session_log.status), (21, 1))
    self.assertEqual(event.step, 30)
    (value,) = event.summary.value
    self.assertEqual((value.tag, value.simple_value), ('loss', 0.5))


def events(path):
  """Reads an event file: records of length, checksum, data, checksum."""
  data = path.read_bytes()
  found = []
  while data:
    length = int.from_bytes(data[:8], 'little')
    found.append(tensorboard.event_pb2.Event.FromString(data[12 : 12 + length]))
    data = data[16 + length :]
  return found


if __name__ == '__main__':
  absltest.main()
