"""A run that is killed, at any moment, ends as if it had not been.

These are real processes and a real SIGKILL. In each layout a run is killed
while it writes a checkpoint, and again somewhere in training; the same command
then finishes it, and everything but times is compared bit for bit with a run
that nobody touched.
"""

import json
import pathlib
import random
import signal
import tempfile
import time

from absl.testing import absltest
from absl.testing import parameterized

from experiments import checkpoints
from tests.experiments import small

LAYOUTS = (
  ('simulation', {'layout': 'simulation'}),
  ('mesh', {'layout': 'mesh', 'devices': 4}),
  ('packed_mesh', {'layout': 'mesh', 'devices': 2}),
)


def checksums(workdir: pathlib.Path):
  """Returns the SHA-256 of every array of the last checkpoint."""
  path = workdir / 'checkpoints' / '60' / 'manifest.json'
  return json.loads(path.read_text())['arrays']


def wait_for(condition, process):
  while not condition():
    if process.poll() is not None:
      raise AssertionError(
        f'ended before it was killed: {process.stderr.read()}'
      )
    time.sleep(0.0005)


class KillTest(parameterized.TestCase):
  @parameterized.named_parameters(*LAYOUTS)
  def test_ends_bit_for_bit_like_an_uninterrupted_run(self, layout):
    folder = self.enter_context(tempfile.TemporaryDirectory())
    folder = pathlib.Path(folder)
    whole, killed = folder / 'whole', folder / 'killed'
    untouched = small.start(small.command(whole, **layout))
    self._kill_while_saving(killed, layout)
    self._kill_somewhere(killed, layout)
    again = small.start(small.command(killed, **layout))
    for process in (untouched, again):
      code, _, errors = small.finish(process)
      self.assertEqual(code, 0, errors)
    self.assertEqual(small.numbers(killed), small.numbers(whole))
    self.assertEqual(checksums(killed), checksums(whole))
    self.assertTrue((killed / 'summary.json').exists())

  def _kill_while_saving(self, workdir, layout):
    """Kills when the third checkpoint is half written."""
    process = small.start(small.command(workdir, **layout))
    partial = workdir / 'checkpoints' / '.partial-15'
    wait_for(partial.exists, process)
    time.sleep(random.uniform(0, 0.02))
    process.send_signal(signal.SIGKILL)
    self.assertEqual(small.finish(process)[0], -signal.SIGKILL)

  def _kill_somewhere(self, workdir, layout):
    process = small.start(small.command(workdir, **layout))
    kept = checkpoints.steps(workdir / 'checkpoints')[-1]
    later = random.choice(range(kept + 5, 56, 5))
    wait_for((workdir / 'checkpoints' / str(later)).exists, process)
    time.sleep(random.uniform(0, 0.03))
    process.send_signal(signal.SIGKILL)
    self.assertEqual(small.finish(process)[0], -signal.SIGKILL)


if __name__ == '__main__':
  absltest.main()
