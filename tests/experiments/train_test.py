"""The binary as a user meets it: exit codes and lines, in real processes."""

import pathlib
import tempfile

from absl.testing import absltest
from absl.testing import parameterized

from experiments import command_line
from experiments import errors
from tests.experiments import small


class TrainTest(parameterized.TestCase):
  """The processes run side by side, because each takes seconds to start."""

  def test_mistakes_are_one_line_and_harm_nothing(self):
    folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
    (folder / 'precious').write_text('mine')
    new = folder / 'new'
    cases = {
      "did you mean 'dsgd'": small.command(new, algorithm__name='dsdg'),
      "did you mean 'workers'": small.command(new, '--config.workrs=3'),
      'not empty and holds no run': small.command(folder),
      'invalid literal': small.command(new, '--config.steps=many'),
      '--workdir is missing': small.command(new)[:4],
    }
    processes = {text: small.start(command) for text, command in cases.items()}
    for text, process in processes.items():
      code, output, shown = small.finish(process)
      self.assertEqual(code, 2, shown)
      self.assertEqual(output, '')
      self.assertStartsWith(shown, 'error: ')
      self.assertIn(text, shown)
      self.assertEqual(shown.count('\n'), 1, shown)
    self.assertEqual([path.name for path in folder.iterdir()], ['precious'])

  def test_a_mesh_on_cpu_needs_nothing_but_the_flag(self):
    folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
    mesh = {'layout': 'mesh', 'devices': 4, 'steps': 5}
    training = small.start(small.command(folder / 'mesh', **mesh))
    listing = small.start(small.command(folder)[:3] + ['--list'])
    code, output, shown = small.finish(training)
    self.assertEqual((code, shown), (0, ''))
    self.assertIn('mesh of 4 cpu device(s), 1 worker(s) on each', output)
    self.assertIn('averaged model', output)
    code, output, _ = small.finish(listing)
    self.assertEqual(code, 0)
    self.assertIn('one_peer_exponential', output)


class CommandLineTest(parameterized.TestCase):
  def test_a_config_file_that_is_not_there_is_named(self):
    with self.assertRaisesRegex(
      errors.UserError, "'configs/digit.py'; did you mean 'configs/digits.py'"
    ):
      command_line.parse(['train', '--config=configs/digit.py'])

  @parameterized.parameters(
    (('--config', 'configs/nothing.py'),),
    (('-config=configs/nothing.py:argument',),),
  )
  def test_in_any_spelling_of_the_flag(self, arguments):
    with self.assertRaisesRegex(errors.UserError, 'there is no config file'):
      command_line.parse(['train', *arguments])


if __name__ == '__main__':
  absltest.main()
