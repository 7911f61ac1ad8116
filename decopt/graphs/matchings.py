"""One partner in a round: workers meet in pairs, with weights 1/2."""

import numpy as np

from decopt import arguments
from decopt import weights
from decopt.graphs import links
from decopt.topology import Topology


def random_matchings(
  workers: int, rounds: int = 16, *, seed: int = 0
) -> Topology:
  """In each round all workers meet in random pairs; of an odd number one rests.

  Symmetric in each round, one message per worker. Rounds are drawn together,
  and drawn again until within them there is a way from each worker to all
  others. One round alone cannot have that from 3 workers on.

  Args:
    workers: any number, 1 or more.
    rounds: the period, 1 or more; 2 of them may be enough to connect all.
    seed: of the draws; 0 or more.

  Raises:
    TypeError: if an argument is not an integer.
    ValueError: if one is too small, or if no rounds that connect all workers
      were found.

  Example:
    >>> topology = random_matchings(8)
    >>> topology.period, topology.degree
    (16, 1)

  References:
    Boyd et al., Randomized Gossip Algorithms, 2006.
  """
  workers = arguments.count('random_matchings', workers=workers)
  rounds = arguments.count('random_matchings', rounds=rounds)
  rng = np.random.default_rng(
    arguments.count('random_matchings', seed=seed, least=0)
  )

  def draw():
    numbers = np.tile(np.arange(workers), (rounds, 1))
    order = rng.permuted(numbers, axis=1)[:, : workers // 2 * 2]
    left, right = order[:, ::2], order[:, 1::2]
    np.put_along_axis(numbers, left, right, axis=1)
    np.put_along_axis(numbers, right, left, axis=1)
    return weights.uniform('random_matchings', links.paired(numbers))

  return links.first_drawn(
    draw,
    lambda topology: rounds == 1 or topology.is_connected(),
    f'random_matchings found no {rounds} rounds that connect {workers} '
    f'workers. Use rounds={rounds + 2} or more.',
  )


def round_robin(workers: int) -> Topology:
  """A tournament: everyone meets everyone once in a period, in pairs.

  Symmetric in each round, one message per worker. A period has `workers - 1`
  rounds for an even number of workers, and as many rounds as workers for an odd
  one, of which each worker rests in one. In round `t` workers meet whose
  numbers add up to `2 t`, modulo the next odd number; the one who would meet
  itself meets the last one, or rests.

  The weights of all rounds take `8 * workers**3` bytes, and 20 times
  `workers**3` while they are made: 1.1 and 2.7 GB for 512 workers.

  Args:
    workers: any number, 1 or more.

  Raises:
    TypeError: if `workers` is not an integer.
    ValueError: if it is less than 1.

  Example:
    >>> topology = round_robin(8)
    >>> topology.period, topology.degree
    (7, 1)
  """
  workers = arguments.count('round_robin', workers=workers)
  odd = workers - 1 + workers % 2
  numbers = np.arange(odd)
  partners = (2 * numbers[:, None] - numbers) % odd
  if workers > odd:
    partners = np.pad(partners, ((0, 0), (0, 1)))
    partners[numbers, numbers] = odd
    partners[:, odd] = numbers
  return weights.uniform('round_robin', links.paired(partners))
