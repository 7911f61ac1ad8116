"""Who sends to whom, in as few permutations as possible.

A worker of degree d has d messages to send and d to receive, but one `ppermute`
carries one message per worker: the links of a graph must be split into
permutations. Koenig's theorem says that d of them are enough, for any graph,
because senders and receivers are the two sides of a bipartite graph. Three ways
to find them are tried, the most regular first:

*Translations.* A graph that looks the same from each worker (ring, torus,
hypercube, exponential, complete) is a union of shifts such as "one to the
right", and shifts are what interconnects are built for.

*Matchings.* In a graph without odd cycles whose links go both ways (star, tree,
grid), pairs of workers exchange messages and all others rest.

*Any graph.* The links, one by one, take the first colour that is free on both
sides; where there is none, a path of two alternating colours changes them.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np


class Permutation(NamedTuple):
  """One message for each worker.

  Attributes:
    sources: int `[workers]`, each worker once; worker `i` hears `sources[i]`.
    is_link: bool `[workers]`; false where the message is padding.
  """

  sources: np.ndarray
  is_link: np.ndarray


def permutations(links: np.ndarray) -> list[Permutation]:
  """Splits the links of a graph into full permutations, as many as its degree.

  A worker without a message in some permutation hears itself. Where it cannot,
  because it sends all the same, it starts a chain of messages, and hears the
  worker at the end of the chain.

  Args:
    links: bool `[workers, workers]`; `links[i, j]` says that receiver `i` hears
      sender `j`. The diagonal is ignored.

  Returns:
    A list of `Permutation`, in which each link is found exactly once. It
    depends on nothing but `links`.

  Example:
    >>> import numpy as np
    >>> star = np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]], bool)
    >>> [permutation.sources.tolist() for permutation in permutations(star)]
    [[1, 0, 2], [2, 1, 0]]
  """
  links = links & ~np.eye(len(links), dtype=bool)
  if not links.any():
    return []
  return _translations(links) or _matchings(links) or _any_graph(links)


def _translations(links: np.ndarray) -> list[Permutation] | None:
  """The shifts that a graph consists of, if it looks the same to all workers.

  Workers are numbered by digits and a shift adds to each digit on its own: one
  digit for a ring, row and column for a torus, bits for a hypercube.
  """
  workers = len(links)
  receivers = np.arange(workers)
  shifts = np.flatnonzero(links[:, 0])  # whom worker 0 = (0, 0, ...) sends to
  for sides in _digit_systems(workers):
    digits = np.stack(np.unravel_index(receivers, sides), axis=-1)
    moved = (digits - digits[shifts, None]) % sides
    sources = np.ravel_multi_index(np.moveaxis(moved, -1, 0), sides)
    if links[receivers, sources].all() and links.sum() == sources.size:
      return [Permutation(row, np.ones(workers, bool)) for row in sources]
  return None


def _digit_systems(workers: int) -> Iterator[tuple[int, ...]]:
  """One digit; then row and column; then bits."""
  yield (workers,)
  for rows in range(2, workers // 2 + 1):
    if workers % rows == 0:
      yield (rows, workers // rows)
  bits = workers.bit_length() - 1
  if bits > 2 and workers == 1 << bits:
    yield (2,) * bits


def _matchings(links: np.ndarray) -> list[Permutation] | None:
  """Pairs that exchange messages, if links go both ways between two sides."""
  side = _two_sides(links) if np.array_equal(links, links.T) else None
  if side is None:
    return None
  found = []
  for pairs in _colour(links & (side[:, None] > side)):
    sources = np.arange(len(links))
    for left, right in pairs.items():
      sources[left], sources[right] = right, left
    found.append(Permutation(sources, sources != np.arange(len(links))))
  return found


def _two_sides(links: np.ndarray) -> np.ndarray | None:
  """Side 0 or 1 for each worker so that all links go across, if possible."""
  side = np.full(len(links), -1)
  for first in range(len(links)):
    if side[first] < 0:
      side[first] = 0
      reached = [first]
      for worker in reached:
        neighbours = np.flatnonzero(links[worker])
        if (side[neighbours] == side[worker]).any():
          return None
        new = neighbours[side[neighbours] < 0]
        side[new] = 1 - side[worker]
        reached.extend(new.tolist())
  return side


def _any_graph(links: np.ndarray) -> list[Permutation]:
  """A minimal colouring, its chains of messages closed to full permutations."""
  found = []
  for target in _colour(links):
    sources = np.arange(len(links))
    is_link = np.zeros(len(links), bool)
    for sender, receiver in target.items():
      sources[receiver], is_link[receiver] = sender, True
    for first in target:
      if not is_link[first]:
        last = first
        while last in target:
          last = target[last]
        sources[first] = last
    found.append(Permutation(sources, is_link))
  return found


def _colour(links: np.ndarray) -> list[dict[int, int]]:
  """Colours links so that none of a colour share a sender or a receiver.

  Args:
    links: bool `[receivers, senders]`, not empty.

  Returns:
    For each colour a dict from sender to receiver; as many as the degree.
  """
  workers = len(links)
  degree = max(links.sum(axis=0).max(), links.sum(axis=1).max())
  # Vertices are the senders, then the receivers; meets[vertex][colour] is the
  # vertex at the other end of the link of that colour.
  meets = [[None] * degree for _ in range(2 * workers)]
  for receiver, sender in np.argwhere(links).tolist():
    out, into = meets[sender], meets[workers + receiver]
    both_free = (c for c in range(degree) if out[c] is None and into[c] is None)
    colour = next(both_free, None)
    if colour is None:
      colour = out.index(None)
      _swap(meets, workers + receiver, colour, into.index(None))
    out[colour], into[colour] = workers + receiver, sender
  return [
    {
      s: meets[s][c] - workers
      for s in range(workers)
      if meets[s][c] is not None
    }
    for c in range(degree)
  ]


def _swap(meets: list[list], vertex: int, colour: int, other: int) -> None:
  """Swaps two colours along the path that leaves a vertex by the first one.

  The path cannot lead to the sender for whom room is made: it reaches senders
  by links of the first colour, which that sender has not.
  """
  path = [vertex]
  while vertex is not None:
    vertex = meets[vertex][colour if len(path) % 2 else other]
    path.append(vertex)
  for vertex in path[:-1]:
    row = meets[vertex]
    row[colour], row[other] = row[other], row[colour]
