"""Who learns of whose end, in what time: real sockets, no processes."""

import queue
import socket
import time

from absl.testing import absltest
from absl.testing import parameterized

from experiments import liveness

TOKEN = 12345
PATIENCE = 0.5


class Team:
  """The watches of several processes, all in this one."""

  def __init__(self, count: int):
    self.reasons = [queue.Queue() for _ in range(count)]
    self.watches = [
      liveness.Watch(index, count, self.reasons[index].put, PATIENCE)
      for index in range(count)
    ]
    self.port, accepting = self.watches[0].listen(TOKEN)
    for watch in self.watches[1:]:
      watch.connect('localhost', self.port, TOKEN)
    accepting.join(5)

  def kill(self, index: int) -> None:
    """Does what the system does to the sockets of a killed process."""
    self.watches[index]._ending.acquire(blocking=False)  # its threads are gone
    for link in self.watches[index]._links:
      link._socket.shutdown(socket.SHUT_RDWR)

  def silence(self, index: int) -> None:
    """Lets nothing out any more, as when a network is gone."""
    for link in self.watches[index]._links:
      link.send = lambda *line: None


class LivenessTest(parameterized.TestCase):
  def _reason(self, team, index, timeout=5.0):
    return team.reasons[index].get(timeout=timeout)

  @parameterized.parameters(1, 2, 3)
  def test_all_hear_at_once_who_died(self, victim):
    team = Team(4)
    start = time.monotonic()
    team.kill(victim)
    for index in {0, 1, 2, 3} - {victim}:
      self.assertEqual(self._reason(team, index), f'process {victim} died')
    self.assertLess(time.monotonic() - start, PATIENCE)

  def test_the_first_one_is_named_too(self):
    team = Team(3)
    team.kill(0)
    for index in (1, 2):
      self.assertEqual(self._reason(team, index), 'process 0 died')

  def test_a_silent_process_is_lost_after_some_patience(self):
    team = Team(3)
    team.silence(2)
    for index in (0, 1):
      reason = self._reason(team, index)
      self.assertEqual(reason, f'process 2 is silent for {PATIENCE} s')

  def test_processes_that_do_nothing_stay_alive(self):
    team = Team(3)
    time.sleep(3 * PATIENCE)
    self.assertTrue(all(reasons.empty() for reasons in team.reasons))

  def test_a_reason_reaches_everybody(self):
    team = Team(3)
    team.watches[1].stop('process 1 stopped: the disk is full')
    for index in (0, 2):
      self.assertIn('disk is full', self._reason(team, index))

  def test_a_process_that_said_goodbye_is_not_missed(self):
    team = Team(3)
    for watch in team.watches[1:]:
      watch.leave()
    team.kill(1)
    team.kill(2)
    time.sleep(3 * PATIENCE)
    self.assertTrue(team.reasons[0].empty())

  def test_strangers_are_not_let_in(self):
    team = liveness.Watch(0, 2, self.fail, PATIENCE)
    port, accepting = team.listen(TOKEN)
    for line in (b'GET / HTTP/1.1\r\n', b'["1", "1"]\n', b'{}\n', b'5\n', b''):
      with socket.create_connection(('localhost', port)) as stranger:
        stranger.sendall(line)
    self.assertTrue(accepting.is_alive())
    friend = liveness.Watch(1, 2, self.fail, PATIENCE)
    friend.connect('localhost', port, TOKEN)
    accepting.join(5)
    self.assertFalse(accepting.is_alive())
    friend.leave()
    team.leave()


if __name__ == '__main__':
  absltest.main()
