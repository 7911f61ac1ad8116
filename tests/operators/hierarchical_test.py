"""Gossip between machines: identities, state, errors, and by hand."""

import inspect

import jax
import numpy as np
import optax
from absl.testing import absltest
from absl.testing import parameterized
from jax.sharding import AxisType
from jax.sharding import Mesh
from jax.sharding import PartitionSpec

import decopt
from tests import helpers

X = np.random.default_rng(0).normal(size=(8, 5)).astype(np.float32)


def _apply(operator, execute=decopt.spmd, x=X):
  return execute(lambda x: operator.update(x, operator.init(x))[0])(x)


def _kron(topology, size):
  """Gossip of workers that says the same."""
  within = np.full((1, size, size), 1 / size)
  return decopt.Topology(np.kron(topology.weights, within), 'by hand')


class IdentitiesTest(parameterized.TestCase):
  @parameterized.named_parameters(helpers.cases(helpers.LAYOUTS))
  def test_is_gossip_with_the_weights_of_both_levels(self, execute):
    for topology in (decopt.ring(4), decopt.star(4), helpers.biased(4)):
      np.testing.assert_allclose(
        _apply(decopt.hierarchical_gossip(topology, 2), execute),
        _apply(decopt.gossip(_kron(topology, 2)), execute),
        rtol=1e-5,
        atol=1e-6,
      )

  def test_is_gossip_along_two_level(self):
    between = decopt.exponential(4)
    np.testing.assert_allclose(
      _apply(decopt.hierarchical_gossip(between, 2)),
      _apply(decopt.gossip(decopt.two_level(4, 2, between))),
      rtol=1e-5,
      atol=1e-6,
    )

  @parameterized.named_parameters(helpers.cases(helpers.LAYOUTS))
  def test_of_one_machine_is_all_reduce(self, execute):
    one = decopt.hierarchical_gossip(decopt.ring(1), 8)
    np.testing.assert_allclose(
      _apply(one, execute), _apply(decopt.all_reduce()), rtol=1e-5, atol=1e-6
    )

  @parameterized.named_parameters(helpers.cases(helpers.LAYOUTS))
  def test_of_machines_of_one_is_gossip(self, execute):
    topology = decopt.exponential(8)
    alone = decopt.hierarchical_gossip(topology, 1)
    np.testing.assert_allclose(
      _apply(alone, execute),
      _apply(decopt.gossip(topology)),
      rtol=1e-5,
      atol=1e-6,
    )

  def test_of_complete_machines_is_all_reduce(self):
    operator = decopt.hierarchical_gossip(decopt.complete(4), 2)
    np.testing.assert_allclose(
      _apply(operator), _apply(decopt.all_reduce()), rtol=1e-5, atol=1e-6
    )

  def test_workers_of_a_machine_agree_afterwards(self):
    after = _apply(decopt.hierarchical_gossip(decopt.ring(4), 2))
    np.testing.assert_array_equal(after[0::2], after[1::2])

  def test_machines_agree_in_the_end_on_the_mean(self):
    operator = decopt.repeated(
      decopt.hierarchical_gossip(decopt.one_peer_exponential(4), 2), 2
    )
    after = _apply(operator)
    np.testing.assert_allclose(
      after, np.broadcast_to(X.mean(0), X.shape), rtol=1e-5, atol=1e-6
    )


class ByHandTest(parameterized.TestCase):
  """The composition of its two halves on two axes of one's own."""

  def setUp(self):
    super().setUp()
    self.transform = optax.chain(
      decopt.all_reduce(axis_name='workers'),
      decopt.gossip(decopt.ring(4), axis_name='machines'),
    )
    self.expected = _apply(decopt.hierarchical_gossip(decopt.ring(4), 2))

  def _update(self, x):
    return self.transform.update(x, self.transform.init(x))[0]

  def test_under_shard_map(self):
    mesh = Mesh(
      np.reshape(jax.devices(), (4, 2)),
      ('machines', 'workers'),
      axis_types=(AxisType.Auto,) * 2,
    )
    spec = PartitionSpec(mesh.axis_names)
    run = jax.jit(
      jax.shard_map(
        self._update, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False
      )
    )
    np.testing.assert_allclose(run(X), self.expected, rtol=1e-5, atol=1e-6)

  def test_under_nested_vmap(self):
    run = jax.vmap(
      jax.vmap(self._update, axis_name='workers'), axis_name='machines'
    )
    result = run(X.reshape(4, 2, 5)).reshape(8, 5)
    np.testing.assert_allclose(result, self.expected, rtol=1e-5, atol=1e-6)

  def test_under_a_vmap_of_ones_own_it_works_as_a_whole(self):
    operator = decopt.hierarchical_gossip(decopt.ring(4), 2)
    run = jax.vmap(
      lambda x: operator.update(x, operator.init(x))[0], axis_name='workers'
    )
    np.testing.assert_allclose(run(X), self.expected, rtol=1e-5, atol=1e-6)


class StateTest(parameterized.TestCase):
  def test_a_fixed_graph_needs_none(self):
    operator = decopt.hierarchical_gossip(decopt.ring(4), 2)
    self.assertEqual(operator.init(X), optax.EmptyState())

  def test_a_changing_graph_counts_with_a_clock(self):
    operator = decopt.hierarchical_gossip(decopt.one_peer_exponential(4), 2)
    state = operator.init(X)
    self.assertIsInstance(state.step, decopt.Clock)
    _, state = decopt.spmd(operator.update)(X, state)
    self.assertEqual(state.step.count, 1)

  def test_trains_with_local_steps_on_every_layout(self):
    # Three steps apart, one on the machine's mean, as in hierarchical SGD.
    problem = helpers.LeastSquares()
    transform = optax.chain(
      optax.sgd(0.1),
      decopt.mix_iterates(
        decopt.every(decopt.hierarchical_gossip(decopt.ring(4), 2), 3)
      ),
    )
    results = [
      helpers.run(execute, {'it': transform}, problem, steps=6)['it']
      for name, execute in helpers.LAYOUTS.items()
      if name in ('simulation', 'mesh', 'mesh_2x4', 'packed_2x4')
    ]
    for result in results[1:]:
      np.testing.assert_allclose(result, results[0], rtol=1e-4, atol=1e-5)


class ErrorsTest(parameterized.TestCase):
  @parameterized.parameters(0, -2)
  def test_a_machine_has_workers(self, size):
    with self.assertRaisesRegex(
      ValueError, f'workers_per_machine={size}.*at least 1'
    ):
      decopt.hierarchical_gossip(decopt.ring(4), size)

  def test_rows_must_sum_to_one(self):
    pushes = decopt.Topology([[0.5, 0, 0], [0.5, 1, 0], [0, 0, 1]], 'pushes')
    with self.assertRaisesRegex(
      ValueError, "hierarchical_gossip needs.*'pushes'.*metropolis"
    ):
      decopt.hierarchical_gossip(pushes, 2)

  def test_a_graph_of_workers_is_refused_with_the_one_to_build(self):
    operator = decopt.hierarchical_gossip(decopt.ring(8), 2)
    with self.assertRaisesRegex(ValueError, 'of machines.*workers=4'):
      _apply(operator)

  def test_the_docstring_says_what_happens_to_the_mean(self):
    documentation = ' '.join(inspect.getdoc(decopt.hierarchical_gossip).split())
    self.assertIn('the mean over workers is preserved if', documentation)


if __name__ == '__main__':
  absltest.main()
