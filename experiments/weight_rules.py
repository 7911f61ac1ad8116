"""The rules for weights that a config can name, for the links of any graph.

``config.topology.weights`` is such a name, or a call with arguments,
``lazy(keep=0.8)``. A new rule is one row of `WEIGHTS`.
"""

import decopt
from experiments import calls
from experiments import errors
from experiments import sections

#: name -> (function of a topology, one line for ``--list``)
WEIGHTS = {
  'metropolis': (
    decopt.metropolis,
    'Metropolis-Hastings: 1 / (1 + the larger degree)',
  ),
  'maximum_degree': (
    decopt.maximum_degree,
    '1 / (1 + the largest degree) on every link',
  ),
  'row_stochastic': (
    decopt.row_stochastic,
    'the mean of what is heard and held; rows sum to 1',
  ),
  'column_stochastic': (
    decopt.column_stochastic,
    'sent out in equal parts, for push-sum (sgp); columns sum to 1',
  ),
  'best_constant': (
    decopt.best_constant,
    'the constant weight that agrees fastest',
  ),
  'fastest_mixing': (
    decopt.fastest_mixing,
    'the symmetric weights that agree fastest; needs cvxpy',
  ),
  'lazy': (decopt.lazy, 'the weights as they are, slowed down; keep'),
}


def apply(topology: decopt.Topology, rule: str) -> decopt.Topology:
  """Returns the links of a topology, in each round, with weights by a rule.

  Raises:
    UserError: for a rule that there is not, or that these links do not allow.
  """
  call = calls.parse_one(rule)
  if call.name not in WEIGHTS:
    raise errors.unknown('weight rule', call.name, WEIGHTS)
  function, _ = WEIGHTS[call.name]
  try:
    return sections.call(
      'topology.weights',
      call.name,
      function,
      call.arguments,
      **{next(iter(sections.parameters(function))): topology},
    )
  except ImportError as error:  # fastest_mixing has a dependency of its own
    raise sections.rejected('topology.weights', error) from error
