"""Who sees what: the training examples, shared out among the workers.

How differently the workers' data are distributed is what makes decentralized
training hard, so this is a knob and not an accident. A partition is a function
of labels, number of workers, and seed; the layout of the run has no part in it.
"""

import numbers
from collections.abc import Sequence

import numpy as np

from experiments.workloads import base

PARTITIONS = ('iid', 'dirichlet', 'by_label', 'sizes')
_PURPOSE = 1  # keeps these draws apart from others that use the same seed
_DRAWS = 100


def partition(
  labels: np.ndarray,
  workers: int,
  name: str = 'iid',
  seed: int = 0,
  alpha: float | None = None,
  sizes: Sequence[float] | None = None,
) -> list[np.ndarray]:
  r"""Shares the examples out among the workers.

  ==============  ===========================================================
  ``'iid'``       shuffled, in parts whose sizes differ by at most one
  ``'dirichlet'`` each class by proportions of its own, drawn from a Dirichlet
                  distribution with parameter ``alpha``; sizes differ too
  ``'by_label'``  sorted by label, cut into parts whose sizes differ by at most
                  one: a worker sees few classes
  ``'sizes'``     shuffled, in parts as large in proportion as ``sizes``
  ==============  ===========================================================

  For ``'dirichlet'``, the fraction :math:`p_{c,i}` of class :math:`c` that
  worker :math:`i` gets follows

  .. math::

    (p_{c,1}, \dots, p_{c,n}) \sim \text{Dirichlet}(\alpha, \dots, \alpha)

  independently for each class, as in Yurochkin et al. (2019). (Hsu et al. draw
  a class mixture for each worker instead, and keep the sizes equal.) A large
  ``alpha`` approaches ``'iid'``; with 0.1 a class is mostly on few workers. If
  a worker is left without an example the draw is repeated, up to 100 times.

  Args:
    labels: `[examples]` ints.
    workers: number of parts.
    name: one of `PARTITIONS`.
    seed: the result depends on it and the other arguments only.
    alpha: for ``'dirichlet'``, a positive number; others ignore it.
    sizes: for ``'sizes'``, a positive number for each worker, relative to their
      sum; others ignore it. With counts that sum to the number of examples,
      the parts have exactly these sizes.

  Returns:
    For each worker, its examples in increasing order, int32. Parts are
    disjoint, cover all examples, and none is empty.

  Raises:
    ValueError: if there are more workers than examples, a worker is left
      without an example, the name is unknown, or `alpha` or `sizes` is missing
      or out of range.

  Example:
    >>> partition(np.array([1, 0, 1, 0]), workers=2, name='by_label')
    [array([1, 3], dtype=int32), array([0, 2], dtype=int32)]

  References:
    Yurochkin et al., `Bayesian nonparametric federated learning of neural
    networks <https://arxiv.org/abs/1905.12022>`_, 2019; Hsu et al., `Measuring
    the effects of non-identical data distribution
    <https://arxiv.org/abs/1909.06335>`_, 2019.
  """
  base.check_name('partition', name, PARTITIONS)
  base.check_count('workers', workers)
  base.check_count('seed', seed, at_least=0)
  labels = np.asarray(labels)
  if workers > len(labels):
    raise ValueError(
      f'{workers} workers cannot share {len(labels)} training examples; use at '
      f'most {len(labels)} workers'
    )
  rng = np.random.default_rng([seed, _PURPOSE])
  if name == 'dirichlet':
    parts = _dirichlet(labels, workers, alpha, rng)
  elif name == 'sizes':
    parts = _proportional(len(labels), workers, sizes, rng)
  else:
    order = rng.permutation(len(labels))
    if name == 'by_label':
      order = order[np.argsort(labels[order], kind='stable')]
    parts = np.array_split(order, workers)
  return [np.sort(part).astype(np.int32) for part in parts]


def _dirichlet(labels, workers, alpha, rng):
  if not isinstance(alpha, numbers.Real) or not 0 < alpha < np.inf:
    raise ValueError(
      f'the dirichlet partition got alpha={alpha}; it needs a positive number, '
      'such as 0.5 (smaller: workers differ more)'
    )
  classes = [np.flatnonzero(labels == label) for label in np.unique(labels)]
  for _ in range(_DRAWS):
    owner = np.empty(len(labels), np.int32)
    for members in classes:
      fractions = rng.dirichlet(np.full(workers, alpha))
      cuts = _cuts(fractions, len(members))
      owner[rng.permutation(members)] = np.repeat(
        np.arange(workers), np.diff(cuts)
      )
    counts = np.bincount(owner, minlength=workers)
    if counts.all():
      return [np.flatnonzero(owner == worker) for worker in range(workers)]
  raise ValueError(
    f'the dirichlet partition with alpha={alpha} left worker '
    f'{np.argmin(counts)} of {workers} without an example, in each of {_DRAWS} '
    'draws; raise alpha, use fewer workers, or use the partition by_label'
  )


def _proportional(examples, workers, sizes, rng):
  given = np.asarray([] if sizes is None else sizes, float)
  if given.shape != (workers,):
    raise ValueError(
      f'the partition sizes got sizes={sizes} for {workers} workers; give one '
      'positive number for each worker'
    )
  if not (np.isfinite(given).all() and (given > 0).all()):
    worker = np.argmin(np.isfinite(given) & (given > 0))
    raise ValueError(
      f'the partition sizes got {given[worker]} for worker {worker}; each '
      'worker needs a positive number'
    )
  cuts = _cuts(given, examples)
  if not np.diff(cuts).all():
    worker = np.argmin(np.diff(cuts))
    raise ValueError(
      f'the partition sizes={sizes} leaves worker {worker} without one of the '
      f'{examples} examples; make its size larger compared with the others'
    )
  return np.split(rng.permutation(examples), cuts[1:-1])


def _cuts(fractions, count):
  """Where to cut `count` things so that the pieces are as `fractions`."""
  total = np.cumsum(fractions)
  # Product before quotient: counts that sum to `count` are then cut exactly.
  return np.rint(np.r_[0, total] * count / total[-1]).astype(int)
