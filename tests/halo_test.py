"""The plan of a packed exchange, carried out in numpy."""

import networkx
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from decopt import halo
from tests import helpers

TOPOLOGIES = {
  'ring': decopt.ring(12),
  'star': decopt.star(12),
  'complete': decopt.complete(12),
  'exponential': decopt.exponential(12),
  'one_peer': decopt.one_peer_exponential(12),
  'torus': decopt.torus(3, 4),
  'biased': helpers.biased(12),
  'random': decopt.metropolis(networkx.gnp_random_graph(12, 0.3, seed=1)),
  'islands': decopt.Topology(np.kron(np.eye(6), np.full((2, 2), 0.5)), 'pairs'),
}


def _exchange(plan, x, local):
  """Does what a program does: ships rows, then sums on each device."""
  devices = len(x) // local
  held = [list(x[d * local : (d + 1) * local]) for d in range(devices)]
  own = [list(rows) for rows in held]
  for shipment in plan.shipments:
    arriving = {
      b: [own[a][r] for r in shipment.rows[a]] for a, b in shipment.pairs
    }
    for device in range(devices):
      nothing = [np.zeros_like(x[0])] * shipment.rows.shape[1]
      held[device] += arriving.get(device, nothing)
  return [np.array(rows) for rows in held]


class PlanTest(parameterized.TestCase):
  @parameterized.named_parameters(
    helpers.cases(TOPOLOGIES, {'2': 2, '3': 3, '4': 4, '12': 12})
  )
  def test_both_sums_are_the_matrix(self, topology, local):
    x = np.random.default_rng(0).normal(size=12)
    for t in range(topology.period):
      plan = halo.plan(topology, t, local)
      held = _exchange(plan, x, local)
      expected = (topology.weights[t] @ x).reshape(-1, local)
      for device, rows in enumerate(held):
        np.testing.assert_allclose(
          plan.dense[device] @ rows, expected[device], rtol=1e-12
        )
        terms = plan.weights[device] * rows[plan.sources[device]]
        np.testing.assert_allclose(
          terms.sum(axis=-1), expected[device], rtol=1e-12
        )

  @parameterized.named_parameters(
    helpers.cases(
      TOPOLOGIES,
      {'2': 2, '4': 4},
      {'by_default': None, 'with_own': True, 'without': False},
    )
  )
  def test_it_says_whose_rows_are_read(self, topology, local, own):
    everyone = np.eye(12)
    for t in range(topology.period):
      plan = halo.plan(topology, t, local, own)
      links = topology.weights[t] > 0
      if own is not None:
        np.fill_diagonal(links, own)
      held = _exchange(plan, everyone, local)
      for device, rows in enumerate(held):
        # A row of zeros came from nobody.
        arrived = rows.any(axis=1)
        np.testing.assert_array_equal(
          rows[arrived], everyone[plan.origins[device]][arrived]
        )
        mine = links[device * local : (device + 1) * local]
        np.testing.assert_array_equal(plan.reads[device] @ rows, mine)
        weights = topology.weights[t][device * local : (device + 1) * local]
        np.testing.assert_array_equal(
          plan.dense[device] @ rows, np.where(mine, weights, 0)
        )
        sources = plan.sources[device]
        read = np.take_along_axis(plan.reads[device], sources, axis=-1)
        self.assertEqual(read.sum(), mine.sum())

  @parameterized.named_parameters(
    helpers.cases(TOPOLOGIES, {'2': 2, '3': 3, '4': 4})
  )
  def test_a_row_crosses_once_to_each_device_that_reads_it(
    self, topology, local
  ):
    for t in range(topology.period):
      links = np.argwhere(topology.weights[t] > 0)
      needed = {
        (int(j), int(i) // local) for i, j in links if i // local != j // local
      }
      sent = [
        (a * local + int(row), b)
        for shipment in halo.plan(topology, t, local).shipments
        for a, b in shipment.pairs
        for row in shipment.rows[a]
      ]
      self.assertCountEqual(sent, needed)

  def test_workers_on_one_device_ship_nothing(self):
    self.assertEmpty(halo.plan(decopt.complete(12), 0, 12).shipments)
    self.assertEmpty(halo.plan(TOPOLOGIES['islands'], 0, 2).shipments)

  def test_permutations_are_permutations(self):
    for topology in TOPOLOGIES.values():
      for shipment in halo.plan(topology, 0, 2).shipments:
        senders, receivers = zip(*shipment.pairs, strict=True)
        self.assertLen(set(senders), len(senders))
        self.assertLen(set(receivers), len(receivers))


if __name__ == '__main__':
  absltest.main()
