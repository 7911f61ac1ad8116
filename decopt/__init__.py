"""Decentralized optimization in JAX: many workers that talk little."""

from decopt.algorithms.local import decentralized_local_sgd
from decopt.algorithms.local import local_sgd
from decopt.algorithms.synchronous import all_reduce_sgd
from decopt.algorithms.synchronous import diffusion
from decopt.algorithms.synchronous import dsgd
from decopt.analysis.consensus import consensus_distance
from decopt.analysis.equality import keeps_workers_equal
from decopt.analysis.traffic import data_dependent_collectives
from decopt.analysis.traffic import Exchange
from decopt.analysis.traffic import Traffic
from decopt.analysis.traffic import traffic
from decopt.base import AxisName
from decopt.base import Clock
from decopt.base import Operator
from decopt.base import WORKERS
from decopt.collectives import mean
from decopt.collectives import mix
from decopt.collectives import worker_count
from decopt.collectives import worker_index
from decopt.graphs import complete
from decopt.graphs import exponential
from decopt.graphs import hypercube
from decopt.graphs import one_peer_exponential
from decopt.graphs import ring
from decopt.graphs import star
from decopt.graphs import torus
from decopt.lifts import mix_iterates
from decopt.lifts import mix_params
from decopt.operators.averaging import all_reduce
from decopt.operators.averaging import gossip
from decopt.operators.combinators import damped
from decopt.operators.combinators import every
from decopt.operators.combinators import repeated
from decopt.placement import average
from decopt.placement import make_mesh
from decopt.placement import place
from decopt.placement import replicate
from decopt.placement import worker
from decopt.spmd import spmd
from decopt.throttle import Throttle
from decopt.topology import Topology
from decopt.weights import metropolis

__all__ = [
  'WORKERS',
  'AxisName',
  'Clock',
  'Exchange',
  'Operator',
  'Throttle',
  'Topology',
  'Traffic',
  'all_reduce',
  'all_reduce_sgd',
  'average',
  'complete',
  'consensus_distance',
  'damped',
  'data_dependent_collectives',
  'decentralized_local_sgd',
  'diffusion',
  'dsgd',
  'every',
  'exponential',
  'gossip',
  'hypercube',
  'keeps_workers_equal',
  'local_sgd',
  'make_mesh',
  'mean',
  'metropolis',
  'mix',
  'mix_iterates',
  'mix_params',
  'one_peer_exponential',
  'place',
  'repeated',
  'replicate',
  'ring',
  'spmd',
  'star',
  'torus',
  'traffic',
  'worker',
  'worker_count',
  'worker_index',
]
