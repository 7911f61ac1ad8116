"""Decentralized optimization in JAX: many workers that talk little."""

from decopt.algorithms.local import decentralized_local_sgd
from decopt.algorithms.local import local_sgd
from decopt.algorithms.push import sgp
from decopt.algorithms.synchronous import all_reduce_sgd
from decopt.algorithms.synchronous import diffusion
from decopt.algorithms.synchronous import dsgd
from decopt.analysis.consensus import consensus_distance
from decopt.analysis.equality import keeps_workers_equal
from decopt.analysis.sent import Exchange
from decopt.analysis.sent import Traffic
from decopt.analysis.traffic import data_dependent_collectives
from decopt.analysis.traffic import traffic
from decopt.base import AxisName
from decopt.base import Clock
from decopt.base import Operator
from decopt.base import Shared
from decopt.base import WORKERS
from decopt.collectives import mean
from decopt.collectives import mix
from decopt.collectives import worker_count
from decopt.collectives import worker_index
from decopt.faults import combined
from decopt.faults import Draw
from decopt.faults import Faults
from decopt.faults import inactive_workers
from decopt.faults import link_bursts
from decopt.faults import link_drops
from decopt.files import load_topology
from decopt.files import save_topology
from decopt.graphs import alternate
from decopt.graphs import barabasi_albert
from decopt.graphs import base_graph
from decopt.graphs import binary_tree
from decopt.graphs import chain
from decopt.graphs import complete
from decopt.graphs import davis_social
from decopt.graphs import erdos_renyi
from decopt.graphs import expander
from decopt.graphs import exponential
from decopt.graphs import grid
from decopt.graphs import hypercube
from decopt.graphs import one_peer_exponential
from decopt.graphs import random_matchings
from decopt.graphs import random_out_degree
from decopt.graphs import random_regular
from decopt.graphs import ring
from decopt.graphs import round_robin
from decopt.graphs import star
from decopt.graphs import torus
from decopt.graphs import two_level
from decopt.graphs import watts_strogatz
from decopt.lifts import mix_iterates
from decopt.lifts import mix_params
from decopt.operators.averaging import all_reduce
from decopt.operators.averaging import gossip
from decopt.operators.averaging import renormalized_gossip
from decopt.operators.combinators import damped
from decopt.operators.combinators import every
from decopt.operators.combinators import repeated
from decopt.operators.hierarchical import hierarchical_gossip
from decopt.operators.participation import while_active
from decopt.operators.push_sum import push_sum
from decopt.placement import average
from decopt.placement import make_mesh
from decopt.placement import place
from decopt.placement import replicate
from decopt.placement import worker
from decopt.report import Report
from decopt.spmd import spmd
from decopt.throttle import Throttle
from decopt.topology import Topology
from decopt.weights import best_constant
from decopt.weights import column_stochastic
from decopt.weights import fastest_mixing
from decopt.weights import joined
from decopt.weights import lazy
from decopt.weights import maximum_degree
from decopt.weights import merged
from decopt.weights import metropolis
from decopt.weights import row_stochastic
from decopt.weights import symmetrized

__all__ = [
  'WORKERS',
  'AxisName',
  'Clock',
  'Draw',
  'Exchange',
  'Faults',
  'Operator',
  'Report',
  'Shared',
  'Throttle',
  'Topology',
  'Traffic',
  'all_reduce',
  'all_reduce_sgd',
  'alternate',
  'average',
  'barabasi_albert',
  'base_graph',
  'best_constant',
  'binary_tree',
  'chain',
  'column_stochastic',
  'combined',
  'complete',
  'consensus_distance',
  'damped',
  'data_dependent_collectives',
  'davis_social',
  'decentralized_local_sgd',
  'diffusion',
  'dsgd',
  'erdos_renyi',
  'every',
  'expander',
  'exponential',
  'fastest_mixing',
  'gossip',
  'grid',
  'hierarchical_gossip',
  'hypercube',
  'inactive_workers',
  'joined',
  'keeps_workers_equal',
  'lazy',
  'link_bursts',
  'link_drops',
  'load_topology',
  'local_sgd',
  'make_mesh',
  'maximum_degree',
  'mean',
  'merged',
  'metropolis',
  'mix',
  'mix_iterates',
  'mix_params',
  'one_peer_exponential',
  'place',
  'push_sum',
  'random_matchings',
  'random_out_degree',
  'random_regular',
  'renormalized_gossip',
  'repeated',
  'replicate',
  'ring',
  'round_robin',
  'row_stochastic',
  'save_topology',
  'sgp',
  'spmd',
  'star',
  'symmetrized',
  'torus',
  'traffic',
  'two_level',
  'watts_strogatz',
  'while_active',
  'worker',
  'worker_count',
  'worker_index',
]
