"""What a graph does to consensus, and what it costs: numbers and a table."""

import dataclasses
import math
from typing import NamedTuple

from decopt import arguments
from decopt import measures

TOLERANCE = 1e-3  # of the distance from the mean, in `Report.rounds_to`


class Spread(NamedTuple):
  """A number for each worker and round, in short."""

  mean: float
  max: float


@dataclasses.dataclass(frozen=True)
class Report:
  """What `Topology.report` returns; prints as a table.

  Attributes:
    name: of the topology.
    workers: how many.
    period: rounds before the weights repeat.
    spectral_gap: see `Topology.spectral_gap`.
    rounds_to: until workers are close, within 1e-3 of what their distance from
      their mean was; None if they never are. See `Topology.rounds_to`, also for
      weights that do not preserve the mean, of which it need not be the
      smallest number.
    effective_neighbours: see `Topology.effective_neighbours`, by its default.
    messages_per_round: that a worker sends.
    bytes_per_round: that a worker sends.
    diameter: rounds until a message has got from any worker to any other, if
      all links of the period were there in each of them; None if one never
      gets there.
    exact_after: rounds, from round 0 on, after which all hold exactly the mean,
      but for rounding; None if they never do. Of push-sum weights, for the
      de-biased values.
    row_stochastic: whether mixing leaves workers that agree as they are.
    column_stochastic: whether it preserves the sum over workers.
    symmetric: whether weights are the same both ways.
  """

  name: str
  workers: int
  period: int
  spectral_gap: float
  rounds_to: int | None
  effective_neighbours: float
  messages_per_round: Spread
  bytes_per_round: Spread
  diameter: int | None
  exact_after: int | None
  row_stochastic: bool
  column_stochastic: bool
  symmetric: bool

  @property
  def doubly_stochastic(self) -> bool:
    """Whether it does both, so that agreement is on the mean."""
    return self.row_stochastic and self.column_stochastic

  def __str__(self) -> str:
    rows = self.rows()
    width = max(map(len, rows))
    values = max(len(value) for value in rows.values())
    return '\n'.join(
      [f'{self.name}']
      + [f'  {key:<{width}}  {value:>{values}}' for key, value in rows.items()]
    )

  def rows(self) -> dict[str, str]:
    """The lines of the table: what it is, and its value as text."""
    return {
      'workers': f'{self.workers:,}',
      'period in rounds': f'{self.period:,}',
      'spectral gap': f'{self.spectral_gap:.4g}',
      f'rounds to {TOLERANCE:g}': _count(self.rounds_to),
      'effective neighbours': f'{self.effective_neighbours:.4g}',
      'messages per round': _spread(self.messages_per_round),
      'bytes per round': _spread(self.bytes_per_round),
      'diameter': _count(self.diameter),
      'exact after rounds': _count(self.exact_after),
      'weights': self._kind(),
    }

  def _kind(self) -> str:
    sums = 'doubly' if self.doubly_stochastic else 'column'
    if not self.column_stochastic:
      sums = 'row'
    return f'{"symmetric, " * self.symmetric}{sums} stochastic'


def of(topology, message_bytes: float) -> Report:
  """The report on a topology; see `Topology.report`."""
  message_bytes = arguments.number('report', message_bytes=message_bytes)
  if not 0 <= message_bytes < math.inf:
    raise ValueError(
      f'report needs 0 or more as message_bytes, but got {message_bytes}.'
    )
  sent = topology.links.sum(axis=1)
  messages = Spread(float(sent.mean()), float(sent.max()))
  return Report(
    name=topology.name,
    workers=topology.workers,
    period=topology.period,
    spectral_gap=topology.spectral_gap(),
    rounds_to=topology.rounds_to(TOLERANCE),
    effective_neighbours=topology.effective_neighbours(),
    messages_per_round=messages,
    bytes_per_round=Spread(*(message_bytes * count for count in messages)),
    diameter=measures.diameter(topology),
    exact_after=measures.exact_after(topology),
    row_stochastic=topology.is_row_stochastic(),
    column_stochastic=topology.is_column_stochastic(),
    symmetric=topology.is_symmetric(),
  )


def _count(value: int | None) -> str:
  return 'never' if value is None else f'{value:,}'


def _spread(spread: Spread) -> str:
  mean, largest = (
    f'{value:,.0f}' if value >= 1000 else f'{value:.4g}' for value in spread
  )
  return mean if mean == largest else f'{mean}, at most {largest}'
