"""What a report says of a graph, and how it prints."""

import networkx
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

import decopt


class CostTest(parameterized.TestCase):
  def test_messages_are_counted_where_they_leave(self):
    # All hear worker 0, who hears nobody.
    weights = np.eye(4) / 2
    weights[:, 0] += 0.5
    report = decopt.Topology(weights, 'broadcast').report(message_bytes=100)
    self.assertEqual(report.messages_per_round, (3 / 4, 3))
    self.assertEqual(report.bytes_per_round, (75, 300))

  def test_rounds_are_averaged(self):
    rounds = np.stack([np.eye(4), decopt.ring(4).weights[0]])
    report = decopt.Topology(rounds, 'every other').report()
    self.assertEqual(report.messages_per_round, (1, 2))
    self.assertEqual(report.bytes_per_round, (4, 8))

  def test_agree_with_what_an_algorithm_sends(self):
    for topology in (decopt.ring(8), decopt.one_peer_exponential(8)):
      report = topology.report()
      traffic = decopt.traffic(
        decopt.gossip(topology), np.zeros(5, np.float32), 8
      )
      sent = traffic.bytes_per_step
      self.assertAlmostEqual(5 * report.bytes_per_round.mean, sent)


class TableTest(parameterized.TestCase):
  def test_is_aligned_and_complete(self):
    topology = decopt.column_stochastic(networkx.star_graph(99))
    report = decopt.lazy(topology).report(message_bytes=1000)
    title, *lines = str(report).splitlines()
    self.assertEqual(title, 'column stochastic, lazy')
    self.assertLen({len(line) for line in lines}, 1)
    text = '\n'.join(lines)
    for expected in (
      r'workers +100\n',
      r'period in rounds +1\n',
      r'messages per round +1.98, at most 99\n',
      r'bytes per round +1,980, at most 99,000\n',
      r'diameter +2\n',
      r'exact after rounds +never\n',
      r'weights +column stochastic$',
    ):
      self.assertRegex(text, expected)

  def test_thousands_are_written_in_full_with_commas(self):
    for size, text in ((999.5, '999.5'), (1000, '1,000'), (12345.6, '12,346')):
      report = decopt.ring(4, directed=True).report(message_bytes=size)
      self.assertEqual(report.rows()['bytes per round'], text)

  def test_bytes_are_a_number_and_not_negative(self):
    with self.assertRaisesRegex(ValueError, '0 or more as message_bytes.*-1'):
      decopt.ring(4).report(-1)
    with self.assertRaisesRegex(TypeError, "as message_bytes, but got '4'"):
      decopt.ring(4).report('4')

  @parameterized.named_parameters(
    ('ring', decopt.ring(4), 'symmetric, doubly stochastic'),
    ('exponential', decopt.exponential(8), 'doubly stochastic'),
    ('rows', decopt.row_stochastic(decopt.star(4)), 'row stochastic'),
    ('columns', decopt.column_stochastic(decopt.star(4)), 'column stochastic'),
  )
  def test_says_what_kind_the_weights_are(self, topology, kind):
    report = topology.report()
    self.assertEqual(report.rows()['weights'], kind)
    self.assertEqual(report.doubly_stochastic, topology.is_doubly_stochastic())
    self.assertEqual(report.row_stochastic, topology.is_row_stochastic())
    self.assertEqual(report.column_stochastic, topology.is_column_stochastic())
    self.assertEqual(report.symmetric, topology.is_symmetric())
    self.assertEqual(report.spectral_gap, topology.spectral_gap())
    self.assertEqual(
      report.effective_neighbours, topology.effective_neighbours(0.95)
    )


if __name__ == '__main__':
  absltest.main()
