"""Partitions cover the examples once, and differ as much as they promise."""

import itertools
from unittest import mock

import jax
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

from experiments.workloads import partition

LABELS = np.random.RandomState(0).randint(0, 10, size=1000)
WORKERS = 8
ARGUMENTS = (
  ('iid', {'name': 'iid'}),
  ('dirichlet', {'name': 'dirichlet', 'alpha': 0.5}),
  ('by_label', {'name': 'by_label'}),
  ('sizes', {'name': 'sizes', 'sizes': [5, 1, 1, 1, 1, 1, 1, 0.5]}),
)


def skew(parts):
  """Mean over workers of the total variation to the labels' distribution."""
  distributions = [np.bincount(LABELS[p], minlength=10) / len(p) for p in parts]
  overall = np.bincount(LABELS, minlength=10) / len(LABELS)
  return np.mean([np.abs(d - overall).sum() / 2 for d in distributions])


class PartitionTest(parameterized.TestCase):
  @parameterized.named_parameters(*ARGUMENTS)
  def test_each_example_goes_to_exactly_one_worker(self, arguments):
    for workers in (1, 2, WORKERS):
      chosen = dict(arguments)
      if 'sizes' in chosen:
        chosen['sizes'] = chosen['sizes'][:workers]
      parts = partition.partition(LABELS, workers, **chosen)
      self.assertLen(parts, workers)
      self.assertTrue(
        all(part.size and part.dtype == np.int32 for part in parts)
      )
      np.testing.assert_array_equal(
        np.sort(np.concatenate(parts)), np.arange(len(LABELS))
      )

  @parameterized.named_parameters(*ARGUMENTS)
  def test_depends_on_the_seed_alone(self, arguments):
    first = partition.partition(LABELS, WORKERS, seed=3, **arguments)
    np.random.seed(99)
    again = partition.partition(LABELS, WORKERS, seed=3, **arguments)
    other = partition.partition(LABELS, WORKERS, seed=4, **arguments)
    jax.tree.map(np.testing.assert_array_equal, first, again)
    self.assertFalse(
      all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))
    )

  @parameterized.named_parameters(('iid', 'iid'), ('by_label', 'by_label'))
  def test_parts_are_equal_within_one(self, name):
    for workers in (3, 7, 16, len(LABELS)):
      parts = partition.partition(LABELS, workers, name)
      lengths = [len(part) for part in parts]
      self.assertLessEqual(max(lengths) - min(lengths), 1)

  def test_by_label_gives_a_worker_neighbouring_labels(self):
    parts = partition.partition(LABELS, WORKERS, 'by_label')
    for part, following in itertools.pairwise(parts):
      self.assertLessEqual(LABELS[part].max(), LABELS[following].min())

  def test_workers_differ_more_the_smaller_alpha(self):
    def mean_skew(alpha):
      draws = [
        partition.partition(LABELS, WORKERS, 'dirichlet', seed, alpha=alpha)
        for seed in range(5)
      ]
      return np.mean([skew(parts) for parts in draws])

    skews = [mean_skew(alpha) for alpha in (0.1, 0.5, 2.0, 10.0, 1000.0)]
    self.assertEqual(skews, sorted(skews, reverse=True))
    self.assertGreater(skews[0], 0.5)
    self.assertLess(skews[-1], 0.1)
    iid = skew(partition.partition(LABELS, WORKERS, 'iid'))
    by_label = skew(partition.partition(LABELS, WORKERS, 'by_label'))
    self.assertLess(iid, skews[2])
    self.assertGreater(by_label, skews[1])

  def test_dirichlet_draws_again_until_no_worker_is_empty(self):
    def parts(seed):
      return partition.partition(LABELS, 20, 'dirichlet', seed, alpha=0.1)

    def one_draw_suffices(seed):
      with mock.patch.object(partition, '_DRAWS', 1):
        try:
          parts(seed)
        except ValueError:
          return False
        return True

    seed = next(s for s in range(1000) if not one_draw_suffices(s))
    self.assertTrue(all(part.size for part in parts(seed)))
    jax.tree.map(np.testing.assert_array_equal, parts(seed), parts(seed))

  def test_sizes_that_sum_to_the_examples_are_exact(self):
    sizes = [700, 200, 99, 1]
    parts = partition.partition(LABELS, 4, 'sizes', sizes=sizes)
    self.assertEqual([len(part) for part in parts], sizes)

  def test_sizes_are_relative_otherwise(self):
    parts = partition.partition(LABELS, 3, 'sizes', sizes=(2, 1, 1))
    self.assertEqual([len(part) for part in parts], [500, 250, 250])


class RefusalTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('more_workers_than_examples', {'workers': 1001}, '1001 workers.*1000'),
    ('no_workers', {'workers': 0}, 'workers is 0'),
    ('unknown_name', {'name': 'dirichle'}, "did you mean 'dirichlet'"),
    ('negative_seed', {'seed': -1}, 'seed is -1'),
    ('alpha_missing', {'name': 'dirichlet'}, 'alpha=None.*such as 0.5'),
    ('alpha_text', {'name': 'dirichlet', 'alpha': '1'}, 'alpha=1; it needs'),
    ('alpha_zero', {'name': 'dirichlet', 'alpha': 0.0}, 'alpha=0.0'),
    ('alpha_nan', {'name': 'dirichlet', 'alpha': np.nan}, 'alpha=nan'),
    (
      'alpha_too_small',
      {'name': 'dirichlet', 'alpha': 1e-3, 'workers': 100},
      r'left worker \d+ of 100 without .* raise alpha, use fewer workers',
    ),
    ('sizes_missing', {'name': 'sizes'}, 'sizes=None for 8 workers'),
    (
      'too_few_sizes',
      {'name': 'sizes', 'sizes': [1, 2]},
      'one positive number',
    ),
    (
      'negative_size',
      {'name': 'sizes', 'sizes': [1, -2], 'workers': 2},
      '-2.0 for worker 1',
    ),
    (
      'size_too_small',
      {'name': 'sizes', 'sizes': [1e6, 1, 1e6], 'workers': 3},
      'leaves worker 1 without',
    ),
  )
  def test_a_mistake_gets_a_line_that_helps(self, changes, message):
    arguments = {'workers': WORKERS, 'name': 'iid'} | changes
    with self.assertRaisesRegex(ValueError, message):
      partition.partition(LABELS, **arguments)

  def test_workers_must_be_a_whole_number(self):
    with self.assertRaisesRegex(TypeError, r'workers is 2\.5'):
      partition.partition(LABELS, 2.5)


if __name__ == '__main__':
  absltest.main()
