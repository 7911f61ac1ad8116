"""From a graph to mixing weights.

Four rules need no more than degrees: `metropolis`, `maximum_degree`,
`row_stochastic` and `column_stochastic`. Two optimize: `best_constant` and
`fastest_mixing`. They take a networkx graph, or a topology, whose weights are
then forgotten and whose links get new ones, round by round. `lazy`, `merged`,
`symmetrized` and `joined` make a topology of another one. `uniform`,
`uniform_columns` and `metropolis_hastings` are what the constructors of
`decopt.graphs` use.
"""

from decopt.weights.changes import lazy
from decopt.weights.changes import merged
from decopt.weights.changes import symmetrized
from decopt.weights.degrees import column_stochastic
from decopt.weights.degrees import maximum_degree
from decopt.weights.degrees import metropolis
from decopt.weights.degrees import metropolis_hastings
from decopt.weights.degrees import row_stochastic
from decopt.weights.degrees import uniform
from decopt.weights.degrees import uniform_columns
from decopt.weights.joining import joined
from decopt.weights.optimal import best_constant
from decopt.weights.optimal import fastest_mixing

__all__ = [
  'best_constant',
  'column_stochastic',
  'fastest_mixing',
  'joined',
  'lazy',
  'maximum_degree',
  'merged',
  'metropolis',
  'metropolis_hastings',
  'row_stochastic',
  'symmetrized',
  'uniform',
  'uniform_columns',
]
