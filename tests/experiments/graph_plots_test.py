"""Pictures of topologies: what is where, and that all of it can be read."""

import io
import itertools

import networkx
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized
from matplotlib import image
from matplotlib import patches
from matplotlib import text as text_lib
from matplotlib.figure import Figure

import decopt
from experiments import agreement
from experiments import graph_layouts
from experiments import graph_panels
from experiments import graph_plots


def positions(topology):
  return graph_layouts.positions(topology.links)


class PositionsTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('ring', decopt.ring(7)),
    ('directed', decopt.ring(7, directed=True)),
    ('chain', decopt.chain(7)),
    ('exponential', decopt.exponential(7)),
    ('one_peer', decopt.one_peer_exponential(7)),
    ('matchings', decopt.random_matchings(7)),
    ('complete', decopt.complete(7)),
  )
  def test_what_is_round_is_on_a_circle_from_the_top(self, topology):
    places = positions(topology)
    np.testing.assert_allclose(np.linalg.norm(places, axis=1), 1)
    np.testing.assert_allclose(places[0], [0, 1], atol=1e-12)
    self.assertGreater(places[1, 0], 0)  # clockwise

  @parameterized.named_parameters(
    ('grid', decopt.grid(3, 4)),
    ('torus', decopt.torus(3, 4)),
    ('narrow', decopt.torus(6, 2)),
  )
  def test_grids_are_in_rows_and_columns(self, topology):
    places = positions(topology)
    columns = graph_layouts.grid_columns(topology.links[0])
    rows = places.reshape(-1, columns, 2)
    self.assertTrue((np.ptp(rows[..., 1], axis=1) == 0).all())
    self.assertTrue((np.ptp(rows[..., 0], axis=0) == 0).all())
    self.assertTrue((np.diff(rows[..., 1], axis=0) < 0).all())

  def test_a_ring_of_four_and_a_square_are_what_they_were_made_as(self):
    self.assertIsNone(graph_layouts.grid_columns(decopt.ring(5).links[0]))
    self.assertEqual(graph_layouts.grid_columns(decopt.grid(2, 2).links[0]), 2)

  def test_a_star_has_its_hub_in_the_middle(self):
    places = positions(decopt.star(9))
    np.testing.assert_array_equal(places[0], 0)
    radii = np.linalg.norm(places[1:], axis=1)
    np.testing.assert_allclose(radii, radii[0])

  @parameterized.named_parameters(
    ('binary', decopt.binary_tree(31)),
    ('random', decopt.metropolis(networkx.random_labeled_tree(40, seed=3))),
  )
  def test_lines_of_a_tree_do_not_cross(self, topology):
    places, links = positions(topology), topology.links[0]
    ends = [places[list(pair)] for pair in np.argwhere(np.triu(links))]
    for one, other in itertools.combinations(ends, 2):
      self.assertFalse(_cross(*one, *other))

  @parameterized.product(
    name=[
      'ring',
      'chain',
      'star',
      'binary_tree',
      'complete',
      'exponential',
      'base_graph',
      'erdos_renyi',
      'barabasi_albert',
      'random_out_degree',
    ],
    workers=[1, 2, 3, 4, 30],
  )
  def test_every_worker_has_a_place_of_its_own(self, name, workers):
    self._check(getattr(decopt, name)(workers))

  @parameterized.parameters(
    decopt.hypercube(64),
    decopt.random_regular(64),
    decopt.davis_social(),
    decopt.two_level(8, 4),
    decopt.metropolis(networkx.empty_graph(5)),
  )
  def test_so_it_has_in_larger_graphs(self, topology):
    self._check(topology)

  def _check(self, topology):
    places = positions(topology)
    self.assertEqual(places.shape, (topology.workers, 2))
    self.assertLess(np.abs(places).max(), 1 + 1e-9)
    apart = np.linalg.norm(places[:, None] - places, axis=-1)
    np.fill_diagonal(apart, np.inf)
    self.assertGreater(apart.min(), 0.4 / topology.workers**0.5)


def _cross(a, b, c, d) -> bool:
  """Says whether lines a-b and c-d share a point that is not an end of both."""

  def side(p, q, r):
    return (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])

  return (
    side(a, b, c) * side(a, b, d) < -1e-9
    and side(c, d, a) * side(c, d, b) < -1e-9
  )


class LinksTest(parameterized.TestCase):
  def draw(self, topology):
    axis = Figure().subplots()
    places = positions(topology)
    graph_panels.draw_links(axis, places, topology.links[0], 'black', side=3)
    arrows = [p for p in axis.patches if isinstance(p, patches.FancyArrowPatch)]
    lines = axis.collections[0].get_segments()
    return arrows, lines, [text.get_text() for text in axis.texts]

  def test_links_both_ways_are_one_line_each(self):
    arrows, lines, _ = self.draw(decopt.ring(8))
    self.assertEmpty(arrows)
    self.assertLen(lines, 8)

  def test_links_one_way_are_arrows(self):
    arrows, lines, _ = self.draw(decopt.ring(8, directed=True))
    self.assertLen(arrows, 8)
    self.assertEmpty(lines)

  def test_lines_bend_around_workers(self):
    arrows, lines, _ = self.draw(decopt.torus(4, 4))
    self.assertLen(lines, 24)
    self.assertLen(arrows, 8)  # from border to border, without a head
    for arrow in arrows:
      self.assertIsInstance(arrow.get_arrowstyle(), patches.ArrowStyle.Curve)

  def test_no_bend_runs_through_the_worker_that_it_avoids(self):
    topology = decopt.exponential(16)
    places = positions(topology)
    arrows, _, _ = self.draw(topology)
    self.assertLen(arrows, 48)  # 16 more links are lines
    for arrow in arrows:
      start, end = arrow._posA_posB
      curve = arrow.get_connectionstyle()(start, end).interpolated(40).vertices
      for place in places:
        if not any(np.allclose(place, end) for end in (start, end)):
          self.assertGreater(np.linalg.norm(curve - place, axis=1).min(), 0.02)

  @parameterized.parameters(1, 2, 16, 64)
  def test_workers_are_numbered(self, workers):
    *_, texts = self.draw(decopt.ring(workers))
    numbers = [int(text) for text in texts]
    self.assertEqual(numbers[0], 0)
    self.assertContainsSubset(numbers, range(workers))
    self.assertGreaterEqual(len(numbers), min(workers, 20))

  def test_too_many_links_are_counted(self):
    arrows, lines, texts = self.draw(decopt.complete(150))
    self.assertEmpty(arrows + lines)
    self.assertEqual(texts[0], '22,350 links')


class AgreementTest(parameterized.TestCase):
  @parameterized.parameters(
    decopt.ring(9),
    decopt.star(8),
    decopt.one_peer_exponential(6),
    decopt.random_matchings(6),
  )
  def test_doubly_stochastic_errors_are_norms_of_the_product(self, topology):
    errors = agreement.consensus_errors(topology, 12)
    product = np.eye(topology.workers)
    mean = np.full_like(product, 1 / topology.workers)
    for t, error in enumerate(errors):
      self.assertAlmostEqual(error, np.linalg.norm(product - mean, 2), 12)
      product = topology.weights[t % topology.period] @ product

  def test_push_sum_errors_are_those_of_the_ratio(self):
    topology = decopt.random_out_degree(8)
    start = np.random.default_rng(0).normal(size=8)
    values, weight, worst = start, np.ones(8), []
    for _ in range(9):
      ratio = values / weight
      worst.append(np.linalg.norm(ratio - ratio.mean()) / np.linalg.norm(start))
      values, weight = (topology.weights[0] @ x for x in (values, weight))
    errors = agreement.consensus_errors(topology, 8)
    self.assertTrue((np.array(worst) <= errors).all())
    self.assertLess(errors[8], 0.5 * errors[0])

  def test_they_end_where_workers_agree(self):
    errors = agreement.consensus_errors(decopt.one_peer_exponential(8), 50)
    self.assertLen(errors, 4)
    self.assertLess(errors[-1], 1e-12)

  def test_a_worker_that_holds_nothing_has_no_error(self):
    topology = decopt.Topology([[0, 0], [1, 1]], 'to the second')
    errors = agreement.consensus_errors(topology, 3)
    np.testing.assert_array_equal(errors, [1, np.nan, np.nan, np.nan])

  def test_large_graphs_take_a_few_steps_of_iteration(self):
    topology = decopt.exponential(300)
    errors = agreement.consensus_errors(topology, 5)
    factor = 1 - topology.spectral_gap()
    np.testing.assert_allclose(errors, factor ** np.arange(6), rtol=0.01)

  def test_bytes_add_up_over_rounds_of_a_period(self):
    topology = decopt.alternate(decopt.ring(8), decopt.complete(8))
    np.testing.assert_array_equal(
      agreement.bytes_sent(topology, 3, 10), [0, 20, 90, 110]
    )

  def test_curves_are_as_long_as_they_are_worth(self):
    def horizon(*topologies):
      return agreement.horizon([topology.report() for topology in topologies])

    slow, fast = decopt.ring(16), decopt.exponential(16)
    self.assertBetween(horizon(slow), 133, 200)
    self.assertBetween(horizon(slow, fast), 30, 100)
    self.assertLessEqual(horizon(decopt.ring(64)), 1001)
    self.assertBetween(horizon(decopt.one_peer_exponential(16)), 4, 10)
    apart = decopt.metropolis(networkx.empty_graph(5))
    self.assertLessEqual(horizon(apart), 1001)


FIVE = [
  ('ring', decopt.ring(8)),
  ('torus(rows=2,columns=4)', decopt.torus(2, 4)),
  ('exponential', decopt.exponential(8)),
  ('one_peer_exponential', decopt.one_peer_exponential(8)),
  ('random_matchings(rounds=16)', decopt.random_matchings(8)),
]


class ComparisonTest(parameterized.TestCase):
  def axes(self, named, rounds=10):
    figure = graph_plots.comparison(named, 4, rounds)
    return figure, figure.get_axes()

  @parameterized.named_parameters(
    ('one', FIVE[:1], 1),
    ('two', FIVE[:2], 2),
    ('three_rounds', FIVE[3:4], 3),
    ('sixteen_rounds', FIVE[4:], 4),
    ('five', FIVE, 1 + 1 + 1 + 3 + 4),
  )
  def test_there_is_a_map_for_each_round_that_is_drawn(self, named, rounds):
    _, axes = self.axes(named)
    maps = [axis for axis in axes if axis.images]
    self.assertLen(maps, rounds)
    self.assertLen(axes, 2 * rounds + 2)
    shown = [axis.images[0].get_array() for axis in maps]
    _, topology = named[-1]
    last = min(topology.period, 4) - 1
    np.testing.assert_array_equal(shown[-1], topology.weights[last])

  def test_curves_are_errors_against_rounds_and_bytes(self):
    figure, axes = self.axes(FIVE[:2])
    for axis, each in ((axes[-2], (1, 1)), (axes[-1], (8, 12))):
      curves = axis.get_lines()
      self.assertEqual(axis.get_yscale(), 'log')
      for (label, topology), curve, step in zip(
        FIVE, curves, each, strict=False
      ):
        self.assertEqual(curve.get_label(), label)
        x, y = curve.get_data()
        np.testing.assert_array_equal(x, step * np.arange(11))
        np.testing.assert_array_equal(
          y, agreement.consensus_errors(topology, 10)
        )
    self.assertIn('worst case', axes[-2].get_title(loc='left'))
    [legend] = figure.subfigs[-1].legends
    self.assertLen(legend.get_texts(), 2)

  def test_a_long_period_is_noted(self):
    figure, _ = self.axes(FIVE[4:])
    headings = [text.get_text() for text in figure.findobj(text_lib.Text)]
    self.assertIn(
      'random_matchings(rounds=16)\n(16 rounds, first 4 drawn)', headings
    )

  @parameterized.named_parameters(
    ('one', FIVE[:1]),
    ('two', FIVE[:2]),
    ('five', FIVE),
    (
      'long_names',
      [
        ('two_level(machines=4,between=one_peer_exponential)', decopt.ring(8)),
        ('watts_strogatz(neighbours=6,probability=0.1)', decopt.ring(8)),
        ('alternate(of=(ring(weights=lazy),torus(rows=2)))', decopt.star(8)),
        ('base_graph(degree=2), lazy(keep=0.8)', decopt.base_graph(8, 2)),
      ],
    ),
  )
  def test_no_words_overlap(self, named):
    figure, axes = self.axes(named)
    figure.draw_without_rendering()
    words = set(figure.findobj(text_lib.Text))
    for axis in axes:
      words -= {*axis.texts, *_ticks(axis)}
      words |= set(_ticks(axis, in_view=True))
    words = [text for text in words if text.get_text()]
    self.assertGreater(len(words), 20)
    for one, other in itertools.combinations(words, 2):
      boxes = one.get_window_extent(), other.get_window_extent()
      self.assertFalse(boxes[0].overlaps(boxes[1]), (one, other))

  def test_dollars_in_a_path_are_no_mathematics(self):
    figure, _ = self.axes([('file(path=$a_$b.csv)', decopt.ring(4))])
    figure.draw_without_rendering()

  def test_the_picture_is_a_png(self):
    figure, _ = self.axes(FIVE[:2])
    pixels = image.imread(io.BytesIO(graph_plots.png(figure)), format='png')
    self.assertGreater(min(pixels.shape[:2]), 700)
    self.assertGreater(pixels.std(), 0.05)
    border = np.concatenate([pixels[:9].ravel(), pixels[-9:].ravel()])
    self.assertEqual(border.min(), 1)  # nothing is cut off


def _ticks(axis, in_view=False):
  """Returns the labels of an axis' ticks, or those that are drawn."""
  found = []
  for side in (axis.xaxis, axis.yaxis):
    low, high = sorted(side.get_view_interval())
    for tick in side.get_major_ticks() + side.get_minor_ticks():
      drawn = axis.axison and low <= tick.get_loc() <= high
      if drawn or not in_view:
        found += [tick.label1] if in_view else [tick.label1, tick.label2]
  return found


if __name__ == '__main__':
  absltest.main()
