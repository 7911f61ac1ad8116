"""The exact mean after a few rounds of few messages, for every number.

One-peer exponential graphs average exactly, but only for powers of two. Here
are graphs that do for any number of workers n, with at most k neighbours in a
round. Write b for k + 1, how many workers can meet in a round.

*If n is a product of numbers up to b*, number the workers by digits. In each
round those meet that differ in one digit; after all digits all is equal.

*If it is not*, write n in base b: its digits cut the workers into parts of
`digit * power` workers, with powers that fall. In each part workers agree, by
the first way. Then part after part hands on what it knows to all later ones. It
consists of `digit` groups of `power` workers, and even one group is larger than
all later parts together: each worker of these can meet one of each group. The
weights are such that each group, and the rest as a whole, then has the mean of
all, and the groups are left to agree within, by the first way again.

*If n = p q* and p is such a product, p sets of q workers may agree on their own
by the second way, and then with each other by the first. Of all these p the one
with the fewest rounds is taken.
"""

from collections.abc import Iterator

import numpy as np

from decopt import arguments
from decopt.topology import Topology


def base_graph(workers: int, degree: int = 1) -> Topology:
  r"""The Base-(k+1) graph: one period gives the exact mean, for any number.

  With :math:`n` ``workers`` and a ``degree`` of :math:`k`, the product of the
  rounds of one period is

  .. math::

    W^{(T-1)} \cdots W^{(1)} W^{(0)} = \tfrac{1}{n} \mathbf{1} \mathbf{1}^\top,
    \qquad T \leq 2 \log_{k+1} n + 2 .

  All rounds are symmetric, and no worker has more than :math:`k` neighbours in
  one. A period must be run from its first round: unlike those of a hypercube,
  the rounds do not commute. For powers of :math:`k + 1` there are
  :math:`\log_{k+1} n` of them; with :math:`k \geq n - 1` there is one.

  Args:
    workers: any number, 1 or more.
    degree: most neighbours that a worker has in a round, 1 or more.

  Raises:
    TypeError: if an argument is not an integer.
    ValueError: if one is less than 1.

  Example:
    >>> base_graph(7)
    Topology('base_2_graph', workers=7, degree=1, period=5, spectral_gap=1)
    >>> base_graph(7, degree=2).period, base_graph(8).period
    (4, 3)

  References:
    Takezawa et al., `Beyond Exponential Graph: Communication-Efficient
    Topologies for Decentralized Learning via Finite-time Convergence
    <https://arxiv.org/abs/2305.11420>`_, 2023.
  """
  workers = arguments.count('base_graph', workers=workers)
  base = arguments.count('base_graph', degree=degree) + 1
  ways = {
    divisor: sides
    for divisor in range(workers, 0, -1)
    if workers % divisor == 0 and (sides := _sides(divisor, base)) is not None
  }
  sets = min(ways, key=lambda p: len(ways[p]) + _duration(workers // p, base))
  each = workers // sets
  rounds = [
    *(np.kron(np.eye(sets), within) for within in _by_parts(each, base)),
    *(np.kron(across, np.eye(each)) for across in _by_digits(ways[sets])),
  ]
  return Topology(np.stack(rounds or [np.eye(1)]), f'base_{base}_graph')


def _sides(workers: int, largest: int) -> list[int] | None:
  """The fewest factors of a number, from 2 to the largest allowed, if any.

  Of those as few, the ones with the smallest sum, which send the least.
  """
  if workers == 1:
    return []
  found = [
    [side, *others]
    for side in range(2, min(workers, largest) + 1)
    if workers % side == 0
    and (others := _sides(workers // side, side)) is not None
  ]
  return min(found, key=lambda sides: (len(sides), sum(sides)), default=None)


def _by_digits(sides: list[int]) -> Iterator[np.ndarray]:
  """Rounds in which workers meet that differ in one digit, for each digit."""
  workers = int(np.prod(sides))
  before = 1
  for side in sides:
    meet = np.kron(np.eye(before), np.full((side, side), 1 / side))
    before *= side
    yield np.kron(meet, np.eye(workers // before))


def _parts(workers: int, base: int) -> list[tuple[int, int, int]]:
  """Digit, exponent and base**exponent where digits are not 0, high to low."""
  parts = []
  exponent, power = 0, 1
  while workers:
    workers, digit = divmod(workers, base)
    if digit:
      parts.append((digit, exponent, power))
    exponent, power = exponent + 1, power * base
  return parts[::-1]


def _duration(workers: int, base: int) -> int:
  """How many rounds `_by_parts` takes."""
  (digit, exponent, _), *others = _parts(workers, base)
  first = exponent + (digit > 1)
  return first + 1 + exponent if others else first


def _by_parts(workers: int, base: int) -> np.ndarray:
  """Rounds `[duration, workers, workers]` after which all hold the mean."""
  parts = _parts(workers, base)
  rounds = np.tile(np.eye(workers), (_duration(workers, base), 1, 1))
  digit, exponent, _ = parts[0]
  agreed = exponent + (digit > 1)  # when the first part, the slowest, has
  begin = 0
  for number, (digit, exponent, power) in enumerate(parts):
    end = begin + digit * power
    part = slice(begin, end)
    whole = _by_digits([digit] * (digit > 1) + [base] * exponent)
    for t, meet in enumerate(whole):
      rounds[t, part, part] = meet
    if end < workers:
      meeting = agreed + number
      _hand_on(rounds[meeting, begin:, begin:], digit, power)
      for t, meet in enumerate(_by_digits([base] * exponent), meeting + 1):
        rounds[t, part, part] = np.kron(np.eye(digit), meet)
    begin = end
  return rounds


def _hand_on(meet: np.ndarray, groups: int, size: int) -> None:
  """The first `groups * size` workers meet the rest, each one of every group.

  Let the first hold x and the rest hold y on average, of n workers in all, r of
  them the rest. With the weight size / n on each link, a group is left with

    size x + r (size / n) (y - x) = size (groups size x + r y) / n

  in sum, which is its share of the mean of all. So the rest has its share, too.
  """
  workers = len(meet)
  rest = np.arange(groups * size, workers)
  weight = size / workers
  for group in range(groups):
    first = group * size + np.arange(len(rest))
    meet[first, rest] = meet[rest, first] = weight
    meet[first, first] = 1 - weight
  meet[rest, rest] = len(rest) / workers
