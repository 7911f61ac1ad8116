"""Random graphs of unequal degrees, drawn until they are connected.

They come from networkx and get Metropolis-Hastings weights. The same seed gives
the same graph; no random state but their own is touched.
"""

import math
import random

from decopt import arguments
from decopt import weights
from decopt.graphs import links as neighbourhoods
from decopt.topology import Topology


def erdos_renyi(
  workers: int, probability: float | None = None, *, seed: int = 0
) -> Topology:
  """Any two workers are neighbours with the same probability, independently.

  Symmetric. By default the probability is `min(1, 2 log(workers) / workers)`,
  twice of what it takes to be connected, which gives about `2 log(workers)`
  neighbours. A graph in pieces is thrown away and another one drawn.

  Args:
    workers: any number, 1 or more.
    probability: of each link, from 0 to 1.
    seed: of the draws; 0 or more.

  Raises:
    TypeError: if an argument is no number.
    ValueError: if one is out of range; or if no connected graph was found, with
      a probability that does.

  Example:
    >>> erdos_renyi(16)
    Topology('erdos_renyi', workers=16, degree=8, period=1, spectral_gap=0.1177)

  References:
    Erdos and Renyi, On Random Graphs I, 1959.
  """
  import networkx  # slow to import, and only needed here

  workers = arguments.count('erdos_renyi', workers=workers)
  rng = _generator('erdos_renyi', seed)
  enough = min(1.0, 2 * math.log(workers) / workers)
  if probability is None:
    probability = enough
  probability = arguments.fraction('erdos_renyi', probability=probability)
  return _first_connected(
    'erdos_renyi',
    lambda: networkx.fast_gnp_random_graph(workers, probability, seed=rng),
    f'erdos_renyi found no connected graph of {workers} workers with '
    f'probability={probability:.3g}. Use probability={enough:.3g}, which is '
    '2 log(workers) / workers, or more.',
  )


def watts_strogatz(
  workers: int,
  neighbours: int = 4,
  probability: float = 0.3,
  *,
  seed: int = 0,
) -> Topology:
  """A ring with some links led elsewhere: a small world.

  Each worker is linked to `neighbours / 2` on each side of it on a ring; then
  one end of each link is moved to a random worker with the given probability:
  from none of them, which is slow to agree, to all of them, a random graph.
  Symmetric. With `neighbours + 1` workers or fewer all are linked to all. A
  graph in pieces is thrown away and another one drawn.

  Args:
    workers: any number, 1 or more.
    neighbours: how many a worker has on average: an even number, 2 or more.
    probability: of moving a link, from 0 to 1.
    seed: of the draws; 0 or more.

  Raises:
    TypeError: if an argument is no number.
    ValueError: if one is out of range, if `neighbours` is odd, or if no
      connected graph was found.

  Example:
    >>> topology = watts_strogatz(16)
    >>> topology.degree, round(topology.spectral_gap(), 3)
    (6, 0.15)

  References:
    Watts and Strogatz, Collective Dynamics of 'Small-World' Networks, 1998.
  """
  import networkx  # slow to import, and only needed here

  workers = arguments.count('watts_strogatz', workers=workers)
  neighbours = arguments.count('watts_strogatz', neighbours=neighbours, least=2)
  probability = arguments.fraction('watts_strogatz', probability=probability)
  rng = _generator('watts_strogatz', seed)
  if neighbours % 2:
    raise ValueError(
      'watts_strogatz needs an even number as neighbours, half of them on each '
      f'side, but got {neighbours}. Use {neighbours - 1} or {neighbours + 1}.'
    )
  if workers <= neighbours:
    return weights.uniform('watts_strogatz', neighbourhoods.everyone(workers))
  return _first_connected(
    'watts_strogatz',
    lambda: networkx.watts_strogatz_graph(
      workers, neighbours, probability, seed=rng
    ),
    f'watts_strogatz found no connected graph of {workers} workers with '
    f'neighbours={neighbours} and probability={probability:.3g}. Use '
    f'neighbours={neighbours + 2}, or a smaller probability: with 0 the ring '
    'stays as it is.',
  )


def barabasi_albert(workers: int, links: int = 2, *, seed: int = 0) -> Topology:
  """A few workers know many: newcomers prefer those who have many neighbours.

  It begins as a star of `links + 1` workers. Each further one is linked to
  `links` of those there are, with probabilities in proportion to how many
  neighbours these have. Symmetric, and always connected. With `links` workers
  or fewer all are linked to all.

  Args:
    workers: any number, 1 or more.
    links: how many a newcomer makes, 1 or more; with 1 it is a tree.
    seed: of the draws; 0 or more.

  Raises:
    TypeError: if an argument is not an integer.
    ValueError: if one is too small.

  Example:
    >>> topology = barabasi_albert(16)
    >>> topology.degree, float((topology.weights > 0).sum(axis=2).mean()) - 1
    (10, 3.5)

  References:
    Barabasi and Albert, Emergence of Scaling in Random Networks, 1999.
  """
  import networkx  # slow to import, and only needed here

  workers = arguments.count('barabasi_albert', workers=workers)
  links = arguments.count('barabasi_albert', links=links)
  rng = _generator('barabasi_albert', seed)
  if workers <= links:
    return weights.uniform('barabasi_albert', neighbourhoods.everyone(workers))
  graph = networkx.barabasi_albert_graph(workers, links, seed=rng)
  return weights.metropolis_hastings(
    'barabasi_albert', neighbourhoods.of_graph(graph)
  )


def _generator(graph: str, seed: int) -> random.Random:
  return random.Random(arguments.count(graph, seed=seed, least=0))


def _first_connected(name: str, draw, advice: str) -> Topology:
  return neighbourhoods.first_drawn(
    lambda: weights.metropolis_hastings(name, neighbourhoods.of_graph(draw())),
    Topology.is_connected,
    advice,
  )
