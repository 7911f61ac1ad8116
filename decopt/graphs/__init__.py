"""Graphs with a name, for any number of workers.

To add one, say who hears whom and return `weights.uniform` weights if all
workers have as many neighbours, `weights.metropolis_hastings` weights for other
undirected graphs, or a `Topology` of weights of your own. Links that would be
double, on a ring of two or a torus with a short side, count once. A graph that
does not exist for some number of workers says which numbers are nearest.
"""

from decopt.graphs.compositions import alternate
from decopt.graphs.compositions import two_level
from decopt.graphs.directed import random_out_degree
from decopt.graphs.exponential import exponential
from decopt.graphs.exponential import one_peer_exponential
from decopt.graphs.finite_time import base_graph
from decopt.graphs.irregular import binary_tree
from decopt.graphs.irregular import chain
from decopt.graphs.irregular import davis_social
from decopt.graphs.irregular import grid
from decopt.graphs.irregular import star
from decopt.graphs.matchings import random_matchings
from decopt.graphs.matchings import round_robin
from decopt.graphs.random_graphs import barabasi_albert
from decopt.graphs.random_graphs import erdos_renyi
from decopt.graphs.random_graphs import watts_strogatz
from decopt.graphs.random_regular import expander
from decopt.graphs.random_regular import random_regular
from decopt.graphs.regular import complete
from decopt.graphs.regular import hypercube
from decopt.graphs.regular import ring
from decopt.graphs.regular import torus

__all__ = [
  'alternate',
  'barabasi_albert',
  'base_graph',
  'binary_tree',
  'chain',
  'complete',
  'davis_social',
  'erdos_renyi',
  'expander',
  'exponential',
  'grid',
  'hypercube',
  'one_peer_exponential',
  'random_matchings',
  'random_out_degree',
  'random_regular',
  'ring',
  'round_robin',
  'star',
  'torus',
  'two_level',
  'watts_strogatz',
]
