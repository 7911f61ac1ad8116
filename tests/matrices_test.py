"""Who hears whom, read off arrays of links."""

import networkx
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

from decopt import matrices


def _digraphs():
  for seed in range(20):
    yield networkx.gnp_random_graph(12, 0.1, seed=seed, directed=True)


class LinksTest(parameterized.TestCase):
  def test_messages_get_where_paths_lead(self):
    for graph in _digraphs():
      links = networkx.to_numpy_array(graph).T > 0
      for start in range(12):
        expected = networkx.descendants(graph, start) | {start}
        found = np.flatnonzero(matrices.reached(links, start))
        self.assertEqual(set(found.tolist()), expected)

  def test_parts_are_sets_in_which_all_reach_all(self):
    for graph in _digraphs():
      found = matrices.parts(networkx.to_numpy_array(graph).T > 0)
      expected = networkx.strongly_connected_components(graph)
      self.assertCountEqual([set(part.tolist()) for part in found], expected)


if __name__ == '__main__':
  absltest.main()
