"""The order of examples is one fixed stream, however it is read."""

import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

from experiments.workloads import sampling


def parts_of(*sizes):
  """Consecutive parts with these numbers of examples."""
  return np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])


class BatchOrderTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('uneven', (7, 100, 33), 8),
    ('smaller_than_a_batch', (3, 5), 16),
    ('larger_than_what_is_drawn_at_once', (5000, 20), 64),
    ('single_examples', (1, 1), 2),
  )
  def test_chunks_do_not_change_the_stream(self, sizes, batch_size):
    steps = 700
    parts = parts_of(*sizes)
    whole = sampling.BatchOrder(parts, batch_size, seed=1).indices(0, steps)
    self.assertEqual(whole.shape, (len(sizes), steps, batch_size))
    self.assertEqual(whole.dtype, np.int32)
    order = sampling.BatchOrder(parts, batch_size, seed=1)
    pieces, first = [], 0
    for chunk in (1, 1, 3, 95, 100, 499, 1):
      pieces.append(order.indices(first, chunk))
      first += chunk
    np.testing.assert_array_equal(np.concatenate(pieces, axis=1), whole)
    for first in (650, 3, 320, 0, 699):  # in any order, from the same object
      np.testing.assert_array_equal(
        order.indices(first, 1), whole[:, first : first + 1]
      )

  @parameterized.named_parameters(
    ('batches_divide_the_part', 40, 8),
    ('batches_span_epochs', 37, 8),
    ('a_batch_holds_several_epochs', 5, 32),
  )
  def test_each_example_is_seen_once_in_each_epoch(self, size, batch_size):
    order = sampling.BatchOrder(parts_of(size, 50), batch_size, seed=0)
    steps = 20 * size // batch_size + 1
    stream = order.indices(0, steps)[0].reshape(-1)
    epochs = stream[: len(stream) // size * size].reshape(-1, size)
    self.assertGreaterEqual(len(epochs), 20)
    for epoch in epochs:
      np.testing.assert_array_equal(np.sort(epoch), np.arange(size))

  def test_each_epoch_is_shuffled_anew(self):
    order = sampling.BatchOrder(parts_of(50), batch_size=50, seed=0)
    epochs = order.indices(0, 200)[0]
    self.assertLen({tuple(epoch) for epoch in epochs}, 200)
    # Uniform shuffles: the mean example at each position is the part's mean,
    # within five standard errors.
    error = 5 * epochs.std() / np.sqrt(200)
    self.assertLess(np.abs(epochs.mean(axis=0) - 24.5).max(), error)

  def test_workers_draw_from_their_own_part(self):
    parts = [np.array([5, 1, 9]), np.array([0, 7]), np.array([2])]
    indices = sampling.BatchOrder(parts, 4, seed=0).indices(10, 6)
    for part, drawn in zip(parts, indices, strict=True):
      self.assertEqual(set(drawn.ravel()), set(part))

  def test_workers_with_like_parts_go_through_them_differently(self):
    parts = [np.arange(64)] * 2
    first, second = sampling.BatchOrder(parts, 64, seed=0).indices(0, 1)
    self.assertFalse(np.array_equal(first, second))

  def test_other_seeds_give_other_orders(self):
    parts = parts_of(100, 100)
    orders = [sampling.BatchOrder(parts, 10, seed=s) for s in (0, 0, 1)]
    first, again, other = (order.indices(0, 5) for order in orders)
    np.testing.assert_array_equal(first, again)
    self.assertFalse(np.array_equal(first, other))

  def test_a_far_step_is_reached_without_the_steps_before(self):
    parts = parts_of(100, 3)
    far = sampling.BatchOrder(parts, 32, seed=0).indices(10**9, 2)
    self.assertEqual(far.shape, (2, 2, 32))

  @parameterized.named_parameters(
    ('batch_size', {'batch_size': 0}, 'batch_size is 0'),
    ('empty_part', {'parts': [np.arange(3), []]}, 'worker 1 has no examples'),
    ('seed', {'seed': -2}, 'seed is -2'),
  )
  def test_refuses_what_gives_no_batches(self, changes, message):
    arguments = {'parts': [np.arange(3)], 'batch_size': 2, 'seed': 0} | changes
    with self.assertRaisesRegex(ValueError, message):
      sampling.BatchOrder(**arguments)

  def test_refuses_steps_that_do_not_exist(self):
    order = sampling.BatchOrder([np.arange(3)], 2, seed=0)
    with self.assertRaisesRegex(ValueError, 'first_step is -1'):
      order.indices(-1, 2)
    with self.assertRaisesRegex(ValueError, 'steps is 0'):
      order.indices(0, 0)


if __name__ == '__main__':
  absltest.main()
