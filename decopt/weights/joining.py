"""The fewest links that connect a graph in pieces."""

import numpy as np

from decopt import matrices
from decopt.topology import Topology
from decopt.weights import degrees
from decopt.weights import reading

Link = tuple[int, int]  # sender, receiver


def joined(topology: Topology) -> Topology:
  r"""Connects what is not connected, by as few links as possible.

  Links are added to the first round, between the workers with the fewest
  neighbours of their part. If all links go both ways, so do those that are
  added, :math:`k - 1` of them for :math:`k` parts; otherwise they are the
  fewest one-way links after which a message from each worker gets to all.

  If all links of the first round go both ways, it gets Metropolis-Hastings
  weights. Otherwise its weights become

  .. math:: W \leftarrow \tfrac12 (W + M),

  where :math:`M` are Metropolis-Hastings or uniform weights on the added links
  alone. Rows, columns or both go on summing to 1, as they did.

  Args:
    topology: any; if it is connected, it is returned as it is.

  Raises:
    TypeError: if it is none.

  Example:
    >>> pairs = decopt.Topology(
    ...   [
    ...     [0.5, 0.5, 0, 0],
    ...     [0.5, 0.5, 0, 0],
    ...     [0, 0, 0.5, 0.5],
    ...     [0, 0, 0.5, 0.5],
    ...   ],
    ...   'pairs',
    ... )
    >>> joined(pairs).is_connected()
    True

  References:
    Eswaran and Tarjan, `Augmentation problems
    <https://doi.org/10.1137/0205044>`_, 1976, for one-way links.
  """
  reading.check_topology('joined', topology)
  links = topology.links.any(axis=0)
  parts = _quietest_first(links)
  if len(parts) == 1:
    return topology
  added = np.zeros_like(links)
  if reading.are_two_way(links):
    for one, other in _chain(parts):
      added[one, other] = added[other, one] = True
  else:
    for sender, receiver in _circles(links, parts):
      added[receiver, sender] = True
  weights = topology.weights.copy()
  weights[0] = _with(added, topology)
  return Topology(weights, f'{topology.name}, joined')


def _with(added: np.ndarray, topology: Topology) -> np.ndarray:
  """Weights of the first round together with the added links."""
  links = topology.links[0] | added
  if reading.are_two_way(added):
    if reading.are_two_way(links):
      return degrees.metropolis_hastings('', links).weights[0]
    alone = degrees.metropolis_hastings('', added).weights[0]
  elif topology.is_column_stochastic():
    # If rows sum to 1, too, no message passes between parts; the added links
    # are then one circle, and what is uniform in columns is so in rows.
    alone = degrees.uniform_columns('', added).weights[0]
  else:
    alone = degrees.uniform('', added).weights[0]
  return (topology.weights[0] + alone) / 2


def _quietest_first(links: np.ndarray) -> list[np.ndarray]:
  """Workers among whom messages get to all, the quietest first."""
  busy = (links | links.T).sum(axis=1)
  return [
    part[np.argsort(busy[part], kind='stable')]
    for part in matrices.parts(links)
  ]


def _chain(parts: list[np.ndarray]) -> list[Link]:
  """One link from each part to the next, to another worker than the last."""
  entries = [part[0] for part in parts]
  exits = [part[min(1, len(part) - 1)] for part in parts]
  return list(zip(exits, entries[1:], strict=False))


def _circles(links: np.ndarray, parts: list[np.ndarray]) -> list[Link]:
  """The fewest one-way links that let a message get from each part to all."""
  belongs = np.zeros((len(links), len(parts)))
  for index, part in enumerate(parts):
    belongs[part, index] = 1
  between = (belongs.T @ links @ belongs > 0) & ~np.eye(len(parts), dtype=bool)
  hears, tells = between.any(axis=1), between.any(axis=0)
  alone = np.flatnonzero(~hears & ~tells).tolist()
  sources = np.flatnonzero(~hears & tells).tolist()
  sinks = np.flatnonzero(hears & ~tells).tolist()
  if len(sources) <= len(sinks):
    added = _augmented(between, sources, sinks, alone)
  else:  # the same problem with all arrows turned round
    turned = _augmented(between.T, sinks, sources, alone)
    added = [(receiver, sender) for sender, receiver in turned]
  return [(parts[sender][0], parts[receiver][0]) for sender, receiver in added]


def _augmented(
  between: np.ndarray, sources: list[int], sinks: list[int], alone: list[int]
) -> list[Link]:
  """Eswaran and Tarjan's links among parts, for no more sources than sinks.

  One circle leads from each matched source on to its sink and from there to
  the next source, then through the sinks that are left and the parts that are
  alone. Sources that are left hang on to a matched sink.
  """
  pairs = _matched(between, sources, sinks)
  starts, ends = [s for s, _ in pairs], [e for _, e in pairs]
  starts_left = [part for part in sources if part not in starts]
  ends_left = [part for part in sinks if part not in ends]
  hung = list(zip(ends_left, starts_left, strict=False))
  single = ends_left[len(hung) :] + alone
  leave, enter = ends + single, starts + single
  return hung + list(zip(leave, enter[1:] + enter[:1], strict=True))


def _matched(
  between: np.ndarray, sources: list[int], sinks: list[int]
) -> list[Link]:
  """Sources with a sink each that they reach, such that no more paths fit."""
  open_parts = np.ones(len(between), bool)
  pairs = []
  for source in sources:
    sink = _search(between, source, sinks, open_parts)
    if sink is not None:
      pairs.append((source, sink))
  return pairs


def _search(between, part, sinks, open_parts) -> int | None:
  """A sink down from a part, through parts that no search has been at."""
  stack = [part]
  while stack:
    part = stack.pop()
    if open_parts[part]:
      open_parts[part] = False
      if part in sinks:
        return part
      stack.extend(np.flatnonzero(between[:, part]).tolist())
  return None
