"""What algorithms need of weights, and that what is advised meets it."""

import itertools
import re

import networkx
import numpy as np
import optax
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from decopt import requirements
from decopt.requirements import AGREES
from decopt.requirements import COLUMN_STOCHASTIC
from decopt.requirements import CONNECTED
from decopt.requirements import DOUBLY_STOCHASTIC
from decopt.requirements import eigenvalues_above
from decopt.requirements import HOLDS
from decopt.requirements import KEEPS
from decopt.requirements import ROW_STOCHASTIC
from decopt.requirements import STATIC
from decopt.requirements import SYMMETRIC

DIGRAPH = networkx.DiGraph([(0, 1), (0, 2), (1, 2), (2, 0), (3, 0), (2, 3)])
PAIRS = decopt.Topology(np.kron(np.eye(2), np.full((2, 2), 0.5)), 'pairs')
#: Name -> needs that occur together.
NEEDS = {
  'averaging': (DOUBLY_STOCHASTIC, CONNECTED, AGREES),
  'symmetric': (SYMMETRIC, DOUBLY_STOCHASTIC, CONNECTED),
  'primal_dual': (SYMMETRIC, CONNECTED, STATIC, eigenvalues_above(-1 / 3)),
  'positive': (CONNECTED, eigenvalues_above(0.0), DOUBLY_STOCHASTIC),
  'pull': (ROW_STOCHASTIC, CONNECTED),
  'push': (COLUMN_STOCHASTIC, CONNECTED),
  'both': (COLUMN_STOCHASTIC, ROW_STOCHASTIC),
  'static_push': (STATIC, COLUMN_STOCHASTIC),
  'agreeing': (AGREES,),
  'agreeing_push': (COLUMN_STOCHASTIC, AGREES, KEEPS),
  'holding': (HOLDS, COLUMN_STOCHASTIC, CONNECTED),
  'spectrum': (eigenvalues_above(0.9999),),
}


def _random(seed):
  """Weights of all kinds: sparse and dense, one-way and not, with a period."""
  rng = np.random.default_rng(seed)
  workers, period = int(rng.integers(1, 9)), int(rng.integers(1, 4))
  links = rng.random((period, workers, workers)) < rng.uniform(0.05, 0.5)
  if seed % 3 == 0:
    links |= links.swapaxes(1, 2)
  weights = links * rng.uniform(0.1, 1, links.shape) + 0.1 * np.eye(workers)
  if seed % 2:
    weights /= weights.sum(axis=2, keepdims=True)
  else:
    weights /= weights.sum(axis=1, keepdims=True)
  return decopt.Topology(weights, f'random {seed}')


def _topologies():
  yield from map(_random, range(60))
  yield from (decopt.ring(n) for n in (1, 2, 8))
  yield from (decopt.one_peer_exponential(8), decopt.exponential(6), PAIRS)
  yield from (decopt.row_stochastic(DIGRAPH), decopt.column_stochastic(DIGRAPH))
  yield decopt.Topology([[0, 1], [1, 0]], 'swap')
  yield decopt.Topology(np.eye(5), 'alone')
  turn = np.roll(np.eye(3), 1, axis=0)
  yield decopt.Topology([turn, turn.T], 'there and back')
  yield decopt.Topology([[0, 0], [1, 1]], 'sink')
  yield decopt.Topology([[0, 0, 1], [1, 0, 0], [0, 1, 0]], 'turn')
  yield decopt.Topology(np.eye(5)[[1, 0, 3, 4, 2]], 'permutation')
  yield decopt.row_stochastic(decopt.star(5))


def _evaluated(expression, topology):
  return eval(expression, {'decopt': decopt, 'topology': topology})


class NearestTest(parameterized.TestCase):
  @parameterized.named_parameters(NEEDS.items())
  def test_meets_all_needs_and_is_what_the_expression_says(self, needs):
    for topology in _topologies():
      changed, expression = requirements.nearest(topology, *needs)
      requirements.require('test', changed, *needs)
      self.assertEqual(_evaluated(expression, topology), changed)

  @parameterized.named_parameters(NEEDS.items())
  def test_the_order_of_needs_does_not_matter(self, needs):
    for topology in itertools.islice(_topologies(), 0, None, 7):
      expressions = {
        requirements.nearest(topology, *order)[1]
        for order in itertools.permutations(needs)
      }
      self.assertLen(expressions, 1)

  @parameterized.named_parameters(NEEDS.items())
  def test_what_the_error_suggests_can_be_pasted(self, needs):
    raised = 0
    for topology in _topologies():
      try:
        requirements.require('test', topology, *needs)
      except ValueError as error:
        raised += 1
        pasted = re.search(r'Use [^:]+: (decopt\..+?\))\.', str(error))[1]
        requirements.require('test', _evaluated(pasted, topology), *needs)
    self.assertGreater(raised, 5)

  @parameterized.named_parameters(
    ('unbalanced', decopt.row_stochastic(decopt.star(4)), 'metropolis({})'),
    ('one_way', decopt.row_stochastic(DIGRAPH), 'symmetrized({})'),
    ('pairs', PAIRS, 'joined({})'),
    ('fine', decopt.exponential(8), ''),
  )
  def test_of_averaging(self, topology, expected):
    changed, expression = requirements.nearest(topology, *NEEDS['averaging'])
    if not expected:
      self.assertIs(changed, topology)
    expected = f'decopt.{expected}' if expected else '{}'
    self.assertEqual(expression, expected.format('topology'))

  def test_links_stay_where_they_can(self):
    for topology in _topologies():
      changed, _ = requirements.nearest(topology, *NEEDS['averaging'])
      both = topology.links | topology.links.swapaxes(1, 2)
      if topology.is_connected():
        self.assertFalse((changed.links & ~both).any(), topology)
      self.assertFalse((topology.links & ~changed.links).any(), topology)
      push, _ = requirements.nearest(topology, COLUMN_STOCHASTIC)
      np.testing.assert_array_equal(push.links, topology.links)

  def test_doubly_stochastic_weights_only_lose_their_direction(self):
    changed, _ = requirements.nearest(decopt.exponential(8), SYMMETRIC)
    matrix = decopt.exponential(8).weights[0]
    np.testing.assert_array_equal(changed.weights[0], (matrix + matrix.T) / 2)

  def test_keeps_no_more_than_the_spectrum_needs(self):
    for bound in (-1 / 3, 0.0, 0.5):
      for topology in (decopt.ring(8), decopt.Topology([[0, 1], [1, 0]], 's')):
        _, expression = requirements.nearest(topology, eigenvalues_above(bound))
        keep = float(re.search(r'topology, (.*)\)', expression)[1])
        smallest = np.linalg.eigvalsh(topology.weights[0])[0]
        self.assertGreater(keep + (1 - keep) * smallest, bound)
        less = keep - 0.001
        self.assertLessEqual(less + (1 - less) * smallest, bound + 1e-9)

  def test_several_changes_are_nested(self):
    rounds = np.stack([decopt.ring(4, directed=True).weights[0], np.eye(4)])
    topology = decopt.Topology(rounds, 'now and then')
    _, expression = requirements.nearest(topology, *NEEDS['primal_dual'])
    self.assertEqual(expression, 'decopt.symmetrized(decopt.merged(topology))')
    _, expression = requirements.nearest(
      topology, SYMMETRIC, STATIC, eigenvalues_above(0.6)
    )
    self.assertEqual(
      expression,
      'decopt.lazy(decopt.symmetrized(decopt.merged(topology)), 0.201)',
    )


class ErrorsTest(parameterized.TestCase):
  @parameterized.named_parameters(
    (
      'column',
      decopt.row_stochastic(decopt.star(4)),
      DOUBLY_STOCHASTIC,
      "rows and columns sum to 1, but topology 'star, row stochastic' has "
      r'column 0 of round 0 sum to 1.75 \(the mean.*drift\). Use metropolis '
      r'weights on its links: decopt.metropolis\(topology\)\.',
    ),
    (
      'row',
      decopt.column_stochastic(decopt.star(4)),
      ROW_STOCHASTIC,
      'has row 0 of round 0 sum to 1.75',
    ),
    (
      'sum_over_workers',
      decopt.row_stochastic(DIGRAPH),
      COLUMN_STOCHASTIC,
      r'column 0 .* sum over workers.*decopt.column_stochastic\(topology\)\.',
    ),
    (
      'symmetry',
      decopt.ring(3, directed=True),
      SYMMETRIC,
      'weight 0 of worker 0 on worker 1, and 0.5 the other way, in round 0',
    ),
    (
      'parts',
      PAIRS,
      CONNECTED,
      "'pairs' falls into parts: nothing of worker 0 ever reaches worker 2 .*"
      r'2 more messages.*decopt.joined\(topology\).*decopt.ring\(4\)\.',
    ),
    (
      'leader',
      decopt.Topology([[1, 0], [0.5, 0.5]], 'leader'),
      CONNECTED,
      'nothing of worker 1 ever reaches worker 0',
    ),
    (
      'rounds',
      decopt.one_peer_exponential(8),
      STATIC,
      r'stay the same, but .* has 3 rounds.*decopt.merged\(topology\)\.',
    ),
    (
      'spectrum',
      decopt.Topology([[0, 1], [1, 0]], 'swap'),
      eigenvalues_above(-1 / 3),
      r'above -0.333333, but .* has the eigenvalue -1 in round 0.*lazy\(',
    ),
  )
  def test_give_the_reason_in_numbers(self, topology, need, message):
    with self.assertRaisesRegex(ValueError, f'^mine needs .*{message}'):
      requirements.require('mine', topology, need)

  def test_workers_that_only_hand_values_on_never_agree(self):
    turn = np.roll(np.eye(3), 1, axis=0)
    for rounds in ([[0, 1], [1, 0]], [turn, turn.T], turn):
      topology = decopt.Topology(rounds, 'circle')
      with self.assertRaisesRegex(
        ValueError,
        "workers that agree in the end, but topology 'circle' has workers whose"
        r' differences.*keep half of their own: decopt.lazy\(topology\)\.',
      ):
        decopt.dsgd(optax.sgd(0.1), topology)
      decopt.dsgd(optax.sgd(0.1), decopt.lazy(topology))

  def test_a_worker_that_gives_all_away_is_named(self):
    sink = decopt.Topology([np.eye(2), [[0, 0], [1, 1]]], 'sink')
    with self.assertRaisesRegex(
      ValueError, r"'sink' lets worker 0 give all away in round 1: it has noth"
    ):
      requirements.require('mine', sink, HOLDS)
    swap = decopt.Topology([[0, 1], [1, 0]], 'swap')
    requirements.require('mine', swap, HOLDS)
    with self.assertRaisesRegex(
      ValueError, r'in round 0: it may, with faults, have nothing .*lazy\('
    ):
      requirements.require('mine', swap, KEEPS)

  def test_an_eigenvalue_of_a_later_round_counts(self):
    rounds = [np.eye(2), np.full((2, 2), 0.5), [[0, 1], [1, 0]]]
    with self.assertRaisesRegex(ValueError, 'eigenvalue -1 in round 2'):
      requirements.require(
        'mine', decopt.Topology(rounds, 'three'), eigenvalues_above(-0.5)
      )

  def test_a_bound_is_not_met_by_rounding(self):
    # The smallest eigenvalue of an even ring is -1/3, up to rounding.
    for workers in (4, 8, 14, 30, 64):
      with self.assertRaisesRegex(ValueError, 'eigenvalue -0.333333'):
        requirements.require(
          'exact diffusion', decopt.ring(workers), eigenvalues_above(-1 / 3)
        )
      requirements.require(
        'mine', decopt.ring(workers + 1), eigenvalues_above(-1 / 3)
      )

  @parameterized.parameters(1, 2, -1.5, float('nan'))
  def test_a_bound_that_no_weights_meet_is_refused(self, bound):
    with self.assertRaisesRegex(ValueError, f'less than 1.*but got {bound}'):
      eigenvalues_above(bound)

  def test_all_reasons_are_given_with_one_advice_for_all(self):
    topology = decopt.row_stochastic(networkx.DiGraph([(0, 1), (2, 3)]))
    with self.assertRaisesRegex(
      ValueError,
      'column 0 of round 0 sum to 1.5.*; and a connected graph, but it falls'
      r'.*decopt.joined\(decopt.symmetrized\(topology\)\)',
    ):
      requirements.require_averaging('mine', topology)

  def test_push_sum_is_offered_to_one_way_links_only(self):
    push = decopt.column_stochastic(DIGRAPH)
    with self.assertRaisesRegex(
      ValueError, r'Or keep links one-way.*decopt.sgp\(optimizer, topology\)\.'
    ):
      requirements.require_averaging('mine', push)
    with self.assertRaisesRegex(
      ValueError, r'sgp\(optimizer, decopt.column_stochastic\(topology\)\)\.'
    ):
      requirements.require_averaging('mine', decopt.row_stochastic(DIGRAPH))
    for topology in (PAIRS, decopt.row_stochastic(decopt.star(4))):
      with self.assertRaises(ValueError) as caught:
        requirements.require_averaging('mine', topology)
      self.assertNotIn('sgp', str(caught.exception))

  def test_push_sum_that_is_offered_can_be_built(self):
    rng = np.random.default_rng(0)
    offered = 0
    for _ in range(40):
      workers = int(rng.integers(2, 6))
      sent = np.eye(workers)[rng.integers(workers, size=(3, workers))]
      topology = decopt.Topology(sent.swapaxes(1, 2), 'all away')
      with self.assertRaises(ValueError) as caught:
        decopt.dsgd(optax.sgd(0.1), topology)
      for pasted in re.findall(r'decopt\.sgp\(.*\)', str(caught.exception)):
        offered += 1
        eval(
          pasted,
          {'decopt': decopt, 'topology': topology, 'optimizer': optax.sgd(0.1)},
        )
    self.assertGreater(offered, 20)

  def test_a_graph_without_weights_is_refused_with_advice(self):
    with self.assertRaisesRegex(
      TypeError, r'mine needs.*got a Graph.*metropol'
    ):
      requirements.require_averaging('mine', networkx.path_graph(3))

  def test_what_is_advised_builds_the_algorithm(self):
    optimizer = optax.sgd(0.1)
    push = decopt.column_stochastic(DIGRAPH)
    for topology in (push, PAIRS, decopt.row_stochastic(decopt.star(4))):
      with self.assertRaisesRegex(ValueError, 'diffusion needs') as caught:
        decopt.diffusion(optimizer, topology)
      advice = re.search(r'Use [^:]+: (\S+)\.', str(caught.exception))[1]
      decopt.diffusion(optimizer, _evaluated(advice, topology))
    decopt.sgp(optimizer, push)


if __name__ == '__main__':
  absltest.main()
