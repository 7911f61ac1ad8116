"""Topologies made from another: lazier, symmetric, or of a single round."""

import numpy as np

from decopt import arguments
from decopt.topology import Topology
from decopt.weights import degrees
from decopt.weights import reading


def lazy(topology: Topology, keep: float = 0.5) -> Topology:
  r"""Workers keep more of what they hold.

  .. math:: W \leftarrow k I + (1 - k) W

  with :math:`k` = ``keep``, in each round. An eigenvalue :math:`\lambda`
  becomes :math:`k + (1 - k) \lambda`: with the default 1/2 no eigenvalue of
  symmetric weights is negative. What summed to 1 still does.

  Args:
    topology: any.
    keep: from 0, for the same weights, to less than 1.

  Raises:
    TypeError: if it is none, or `keep` no number.
    ValueError: if `keep` is not in this range.

  Example:
    >>> pair = decopt.Topology([[0, 1], [1, 0]], 'swap')
    >>> lazy(pair).weights[0].tolist()
    [[0.5, 0.5], [0.5, 0.5]]
  """
  reading.check_topology('lazy', topology)
  keep = arguments.number('lazy', keep=keep)
  if not 0 <= keep < 1:
    raise ValueError(
      f'lazy needs keep from 0 to less than 1, but got {keep}; with 1 nothing '
      'would be exchanged.'
    )
  weights = keep * np.eye(topology.workers) + (1 - keep) * topology.weights
  return Topology(weights, f'{topology.name}, lazy')


def merged(topology: Topology) -> Topology:
  r"""All rounds of a period as one: a fixed graph with the links of all.

  .. math:: W \leftarrow \frac1\tau \sum_{t < \tau} W^{(t)}

  for rounds :math:`W^{(0)}, \dots, W^{(\tau - 1)}`. What summed to 1 in each
  round still does, and it is connected if the period was.

  Args:
    topology: any.

  Raises:
    TypeError: if it is none.

  Example:
    >>> merged(decopt.one_peer_exponential(8)).weights[0, 7].round(6).tolist()
    [0.0, 0.0, 0.0, 0.166667, 0.0, 0.166667, 0.166667, 0.5]
  """
  reading.check_topology('merged', topology)
  return Topology(topology.weights.mean(axis=0), f'{topology.name}, merged')


def symmetrized(topology: Topology) -> Topology:
  r"""Links that go both ways, with symmetric and doubly stochastic weights.

  If the weights are doubly stochastic they become the nearest symmetric ones,

  .. math:: W \leftarrow \tfrac12 (W + W^\top),

  in each round; otherwise they become those of `metropolis`.

  Args:
    topology: any.

  Raises:
    TypeError: if it is none.

  Example:
    >>> symmetrized(decopt.exponential(4)).weights[0, 0].round(6).tolist()
    [0.333333, 0.166667, 0.333333, 0.166667]
  """
  reading.check_topology('symmetrized', topology)
  name = f'{topology.name}, symmetrized'
  if topology.is_doubly_stochastic():
    weights = topology.weights
    return Topology((weights + weights.swapaxes(1, 2)) / 2, name)
  links = topology.links | topology.links.swapaxes(1, 2)
  return degrees.metropolis_hastings(name, links)
