"""What the constructors of graphs share: links, and drawing them at random.

Links are bool `[workers, workers]`, or `[period, workers, workers]`; entry
`[receiver, sender]` says that the receiver hears the sender.
"""

from collections.abc import Callable, Iterable

import numpy as np

from decopt.topology import Topology

_ATTEMPTS = 200


def shifted(workers: int, offsets: Iterable[int]) -> np.ndarray:
  """Links from each worker `i` to `i + offset`, around the ring."""
  links = np.zeros((workers, workers), bool)
  senders = np.arange(workers)
  for offset in offsets:
    links[(senders + offset) % workers, senders] = True
  return links


def everyone(workers: int) -> np.ndarray:
  """Links from each worker to all others."""
  return ~np.eye(workers, dtype=bool)


def powers_of_two(limit: int) -> list[int]:
  """1, 2, 4, ... below a limit, in integers: logarithms round."""
  return [1 << t for t in range((limit - 1).bit_length())]


def paired(partners: np.ndarray) -> np.ndarray:
  """Links of rounds in which each worker meets one other.

  Args:
    partners: int `[period, workers]`; `partners[t, i]` is whom `i` meets in
      round `t`, or `i` itself if it rests.
  """
  links = np.zeros((*partners.shape, partners.shape[1]), bool)
  np.put_along_axis(links, partners[..., None], True, axis=-1)
  return links


def of_graph(graph) -> np.ndarray:
  """Links of an undirected networkx graph with nodes `0, 1, 2, ...`."""
  import networkx  # slow to import, and only needed here

  return networkx.to_numpy_array(graph, range(len(graph)), weight=None) > 0


def first_drawn(
  draw: Callable[[], Topology],
  accept: Callable[[Topology], bool],
  advice: str,
) -> Topology:
  """The first of some random topologies that will do.

  Args:
    draw: gives another topology at each call.
    accept: whether one of them will do.
    advice: what the error says if none of them does.
  """
  for _ in range(_ATTEMPTS):
    topology = draw()
    if accept(topology):
      return topology
  raise ValueError(f'{advice} ({_ATTEMPTS} graphs were drawn.)')
