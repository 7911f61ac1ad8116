"""Conditions on mixing weights, and what to do where one does not hold.

A `Need` is one condition on a topology: how to say it, how to find that it does
not hold, and the change that makes it hold and breaks no need before it.
`decopt.requirements` checks them.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from decopt import measures
from decopt import weights
from decopt.matrices import reached
from decopt.matrices import TOLERANCE
from decopt.topology import Topology
from decopt.weights import reading

_MARGIN = 1e-9  # eigenvalues are known up to rounding


@dataclasses.dataclass(frozen=True)
class Need:
  """One condition on a topology.

  Attributes:
    phrase: what is needed.
    otherwise: what would happen without it.
    order: repairs are made in this order; each keeps what those before it won.
    violation: takes a topology; says in numbers what is wrong with it, as the
      rest of a sentence that starts with its name, or '' if the need is met.
    repair: takes a topology; returns one that meets the need, an expression for
      it in which `{}` is the one before, and what was done.
  """

  phrase: str
  otherwise: str
  order: int
  violation: Callable[[Topology], str]
  repair: Callable[[Topology], tuple[Topology, str, str]]


def eigenvalues_above(bound: float) -> Need:
  """All eigenvalues, in each round, are larger than a bound.

  For weights that are not symmetric these are the eigenvalues of their
  symmetric part. Rounding does not decide: -1/3 is not above -1/3, nor is
  what is closer to it than 1e-9.

  Args:
    bound: from -1 to less than 1, such as -1/3.

  Raises:
    ValueError: for another bound.
  """
  if not -1 <= bound < 1:
    raise ValueError(
      f'eigenvalues_above needs a bound from -1 to less than 1, the largest '
      f'eigenvalue of all weights, but got {bound}.'
    )

  def violation(topology):
    smallest = _smallest_eigenvalues(topology)
    t = int(smallest.argmin())
    if smallest[t] > bound + _MARGIN:
      return ''
    return f'has the eigenvalue {smallest[t]:.6g} in round {t}'

  def repair(topology):
    smallest = _smallest_eigenvalues(topology).min()
    keep = _rounded_up((bound + _MARGIN - smallest) / (1 - smallest))
    return (
      weights.lazy(topology, keep),
      f'decopt.lazy({{}}, {keep!r})',
      f'workers that keep {keep!r} more of their own',
    )

  return Need(
    f'weights with all eigenvalues above {bound:.6g}',
    'errors along its eigenvector could grow',
    order=8,
    violation=violation,
    repair=repair,
  )


def _wrong_sum(axis: int, name: str) -> Callable[[Topology], str]:
  """Names the row (axis 2) or column (axis 1) that does not sum to 1."""

  def violation(topology):
    sums = topology.weights.sum(axis=axis)
    wrong = np.argwhere(np.abs(sums - 1) > TOLERANCE)
    if not len(wrong):
      return ''
    t, worker = wrong[0].tolist()
    return f'has {name} {worker} of round {t} sum to {sums[t, worker]:.6g}'

  return violation


_wrong_row = _wrong_sum(axis=2, name='row')
_wrong_column = _wrong_sum(axis=1, name='column')


def _asymmetry(topology: Topology) -> str:
  transposed = topology.weights.swapaxes(1, 2)
  wrong = np.argwhere(np.abs(topology.weights - transposed) > TOLERANCE)
  if not len(wrong):
    return ''
  t, i, j = wrong[0].tolist()
  return (
    f'has weight {topology.weights[t, i, j]:.6g} of worker {i} on worker {j}, '
    f'and {topology.weights[t, j, i]:.6g} the other way, in round {t}'
  )


def _gap(topology: Topology) -> str:
  """Names a worker that another one never hears of."""
  links = topology.links.any(axis=0)
  informed, heard = reached(links), reached(links.T)
  if not informed.all():
    sender, receiver = 0, int(informed.argmin())
  elif not heard.all():
    sender, receiver = int(heard.argmin()), 0
  else:
    return ''
  return (
    f'falls into parts: nothing of worker {sender} ever reaches worker '
    f'{receiver}'
  )


def _circling(topology: Topology) -> str:
  if measures.agree(topology):
    return ''
  return 'has workers whose differences are as large after each period'


def _emptied(certain: Callable[[Topology], np.ndarray], verb: str):
  """Names a worker that no weight is certain to be left with in a round."""

  def violation(topology):
    empty = np.argwhere(certain(topology) == 0)
    if not len(empty):
      return ''
    t, worker = empty[0].tolist()
    return f'lets worker {worker} give all away in round {t}: it {verb} nothing'

  return violation


def _smallest_eigenvalues(topology: Topology) -> np.ndarray:
  matrices = topology.weights
  return np.linalg.eigvalsh((matrices + matrices.swapaxes(1, 2)) / 2)[:, 0]


def _rounded_up(keep: float) -> float:
  """To three digits of what is left, 1 - keep: for people to read."""
  digits = 3
  while (rounded := (int(keep * 10**digits) + 1) / 10**digits) >= 1:
    digits += 1
  return rounded


def _merge(topology: Topology):
  return weights.merged(topology), 'decopt.merged({})', 'the mean of its rounds'


def _balance(topology: Topology):
  if topology.is_doubly_stochastic():
    change = 'the mean of its weights and their transpose'
  elif reading.are_two_way(topology.links):
    return _metropolis(topology)
  else:
    change = 'metropolis weights on its links, both ways'
  return weights.symmetrized(topology), 'decopt.symmetrized({})', change


def _metropolis(topology: Topology):
  return (
    weights.metropolis(topology),
    'decopt.metropolis({})',
    'metropolis weights on its links',
  )


def _uniform(rule: str, remark: str = ''):
  """Repairs rows or columns by the rule of that name, if links are one-way."""

  def repair(topology):
    if reading.are_two_way(topology.links):
      return _metropolis(topology)
    return (
      getattr(weights, rule)(topology),
      f'decopt.{rule}({{}})',
      f'uniform weights on its links{remark}',
    )

  return repair


def _slow(topology: Topology):
  return (
    weights.lazy(topology),
    'decopt.lazy({})',
    'workers that keep half of their own',
  )


def _slow_and_join(topology: Topology):
  slow = _slow(topology)
  if measures.agree(slow[0]):
    return slow
  joined, inner, addition = _join(topology)
  changed, template, change = _slow(joined)
  return changed, template.format(inner), f'{addition}, and {change}'


def _join(topology: Topology):
  joined = weights.joined(topology)
  added = int((joined.links & ~topology.links).sum())
  return (
    joined,
    'decopt.joined({})',
    f'{added} more messages a period, which connect its parts',
  )


STATIC = Need(
  'weights that stay the same',
  'what it remembers would belong to other weights',
  order=0,
  violation=lambda topology: (
    f'has {topology.period} rounds' if topology.period > 1 else ''
  ),
  repair=_merge,
)
SYMMETRIC = Need(
  'symmetric weights',
  'what it promises holds for symmetric ones',
  order=1,
  violation=_asymmetry,
  repair=_balance,
)
DOUBLY_STOCHASTIC = Need(
  'weights whose rows and columns sum to 1',
  'the mean over workers would drift',
  order=2,
  violation=lambda topology: _wrong_row(topology) or _wrong_column(topology),
  repair=_balance,
)
ROW_STOCHASTIC = Need(
  'weights whose rows sum to 1',
  'averaging would change workers that agree',
  order=3,
  violation=_wrong_row,
  repair=_uniform(
    'row_stochastic', ' (if they went both ways, metropolis weights)'
  ),
)
COLUMN_STOCHASTIC = Need(
  'weights whose columns sum to 1',
  'the sum over workers would drift',
  order=3,
  violation=_wrong_column,
  repair=_uniform('column_stochastic'),
)
CONNECTED = Need(
  'a connected graph',
  'workers could not all agree',
  order=4,
  violation=_gap,
  repair=_join,
)
AGREES = Need(
  'workers that agree in the end',
  'mixing would not bring them together',
  order=5,
  violation=_circling,
  repair=_slow_and_join,
)
HOLDS = Need(
  'each worker to hold some weight',
  'values are divided by it',
  order=6,
  violation=_emptied(lambda topology: topology.weights.sum(axis=2), 'has'),
  repair=_slow,
)
KEEPS = Need(
  'each worker to keep some weight, as faults may take all that it hears',
  'values are divided by it',
  order=7,
  violation=_emptied(
    lambda topology: topology.weights.diagonal(axis1=1, axis2=2),
    'may, with faults, have',
  ),
  repair=_slow,
)
