"""Graphs with a name, for any number of workers.

To add one, say who hears whom and return `weights.uniform` weights if all
workers have as many neighbours, `weights.metropolis_hastings` weights for other
undirected graphs, or a `Topology` of weights of your own. Links that would be
double, on a ring of two or a torus with a short side, count once.
"""

from decopt.graphs.exponential import exponential
from decopt.graphs.exponential import one_peer_exponential
from decopt.graphs.regular import complete
from decopt.graphs.regular import hypercube
from decopt.graphs.regular import ring
from decopt.graphs.regular import torus
from decopt.graphs.trees import star

__all__ = [
  'complete',
  'exponential',
  'hypercube',
  'one_peer_exponential',
  'ring',
  'star',
  'torus',
]
