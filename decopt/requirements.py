"""What an algorithm needs of its mixing weights, checked when it is built.

`require` raises for the needs that a topology does not meet, and `nearest`
makes the changes for all of them; what the error suggests is the expression
that `nearest` returns, to be pasted. The needs are those of
`decopt.needs`.
"""

from decopt.needs import AGREES
from decopt.needs import COLUMN_STOCHASTIC
from decopt.needs import CONNECTED
from decopt.needs import DOUBLY_STOCHASTIC
from decopt.needs import eigenvalues_above
from decopt.needs import HOLDS
from decopt.needs import KEEPS
from decopt.needs import Need
from decopt.needs import ROW_STOCHASTIC
from decopt.needs import STATIC
from decopt.needs import SYMMETRIC
from decopt.topology import Topology
from decopt.weights import reading

__all__ = [
  'AGREES',
  'COLUMN_STOCHASTIC',
  'CONNECTED',
  'DOUBLY_STOCHASTIC',
  'HOLDS',
  'KEEPS',
  'ROW_STOCHASTIC',
  'STATIC',
  'SYMMETRIC',
  'Need',
  'eigenvalues_above',
  'nearest',
  'require',
  'require_averaging',
]


def require(
  algorithm: str, topology: Topology, *needs: Need, push_sum: bool = False
) -> None:
  """Checks that a topology is what an algorithm needs.

  Args:
    algorithm: whose needs these are.
    topology: what is checked.
    *needs: of `decopt.needs`.
    push_sum: whether push-sum can take the place of averaging in the algorithm;
      it is then suggested too, for graphs with one-way links.

  Raises:
    TypeError: if `topology` is none.
    ValueError: with the reasons in numbers, and the nearest graph that works.
  """
  if not isinstance(topology, Topology):
    raise TypeError(
      f'{algorithm} needs a decopt.Topology, but got a '
      f'{type(topology).__name__}. Make one: decopt.ring(workers), or '
      'decopt.metropolis(graph) of an undirected networkx graph.'
    )
  reasons = [
    f'{need.phrase}, but {{}} {wrong} ({need.otherwise})'
    for need in needs
    if (wrong := need.violation(topology))
  ]
  if reasons:
    first, *others = reasons
    reasons = [first.format(f'topology {topology.name!r}')]
    reasons += [other.format('it') for other in others]
    advice = _advice(topology, needs, push_sum)
    raise ValueError(f'{algorithm} needs {"; and ".join(reasons)}. {advice}')


def require_averaging(algorithm: str, topology: Topology) -> None:
  """Checks that repeated mixing takes every worker to the mean of all.

  Args:
    algorithm: whose requirement this is.
    topology: must be doubly stochastic and connected over its period, and must
      not just hand values on: differences between workers must die out.

  Raises:
    TypeError: if `topology` is none.
    ValueError: with the reason, and what to use instead.
  """
  require(
    algorithm, topology, DOUBLY_STOCHASTIC, CONNECTED, AGREES, push_sum=True
  )


def nearest(topology: Topology, *needs: Need) -> tuple[Topology, str]:
  """The topology nearest to a given one that meets all needs.

  Links stay where they can. They get Metropolis-Hastings weights, or, where
  they are one-way, uniform ones if these suffice and are made two-way if not.
  Parts are connected by as few links as possible, and workers keep as little
  more of their own value as brings the smallest eigenvalue above its bound.

  Args:
    topology: where to start; it is returned if it meets all needs.
    *needs: of `decopt.needs`.

  Returns:
    The topology, and the Python expression for it, in which `topology` is the
    one given: `decopt.lazy(decopt.metropolis(topology), 0.1)`.
  """
  changed, expression, _ = _repaired(topology, needs)
  return changed, expression


def _repaired(topology, needs) -> tuple[Topology, str, str]:
  """What meets the needs, the expression for it, and what was done."""
  if ROW_STOCHASTIC in needs and COLUMN_STOCHASTIC in needs:
    needs = (*needs, DOUBLY_STOCHASTIC)  # which neither repair alone would give
  expression, changes = 'topology', []
  for need in sorted(needs, key=lambda need: need.order):
    if need.violation(topology):
      topology, template, change = need.repair(topology)
      expression = template.format(expression)
      changes.append(change)
  return topology, expression, ' and '.join(changes)


def _advice(topology, needs, push_sum) -> str:
  _, expression, changes = _repaired(topology, needs)
  advice = f'Use {changes}: {expression}.'
  if CONNECTED in needs and not topology.is_connected():
    advice += f' Or another graph, such as decopt.ring({topology.workers}).'
  if push_sum and not reading.are_two_way(topology.links):
    _, one_way, _ = _repaired(topology, (COLUMN_STOCHASTIC, CONNECTED, HOLDS))
    advice += (
      ' Or keep links one-way, with push-sum in place of averaging: '
      f'decopt.sgp(optimizer, {one_way}).'
    )
  return advice
