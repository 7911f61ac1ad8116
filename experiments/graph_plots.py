"""Topologies as one PNG: links, weights, and how fast workers agree.

Each topology has a block of panels: a graph of its links, and below it (beside
it, where there is room) a map of its weights, for each of the first rounds of a
period. Two panels of curves compare the topologies.
"""

import dataclasses
import io
import re
from collections.abc import Sequence

import numpy as np
from matplotlib import ticker
from matplotlib.backends import backend_agg
from matplotlib.figure import Figure

import decopt
from experiments import agreement
from experiments import display
from experiments import graph_layouts
from experiments import graph_panels

_COLOURS = (
  '#1a73e8',
  '#d93025',
  '#188038',
  '#e8710a',
  '#8430ce',
  '#00838f',
  '#c2185b',
  '#5f6368',
)
_DASHES = ('-', (0, (6, 2)), (0, (2, 1.5)), (0, (7, 2, 2, 2)))
_MOST_COLUMNS = 6  # of panels; a period of more rounds is shown in part
_FIRST_ROUNDS = 4
_LETTERS = 9  # of a heading on an inch
_EXACT = 1e-12  # a consensus error that is rounding


@dataclasses.dataclass(frozen=True)
class _Block:
  """A topology with its label and its place among the others."""

  label: str
  topology: decopt.Topology
  index: int

  @property
  def rounds(self) -> int:
    """How many rounds of a period are drawn."""
    period = self.topology.period
    return period if period <= _MOST_COLUMNS else _FIRST_ROUNDS

  @property
  def colour(self) -> str:
    return _COLOURS[self.index % len(_COLOURS)]

  @property
  def style(self) -> dict:
    """How its curve looks: curves that coincide are still told apart."""
    return {
      'color': self.colour,
      'ls': _DASHES[(self.index + self.index // len(_COLOURS)) % len(_DASHES)],
      'lw': max(1.5, 3.5 - 0.5 * self.index),
      'label': self.label,
    }


def png(figure: Figure) -> bytes:
  """Returns a figure as a picture, with a margin all around."""
  buffer = io.BytesIO()
  figure.savefig(buffer, format='png', bbox_inches='tight', pad_inches=0.2)
  return buffer.getvalue()


def comparison(
  named: Sequence[tuple[str, decopt.Topology]],
  message_bytes: float,
  rounds: int,
) -> Figure:
  """Draws topologies, their weights, and their consensus errors.

  Args:
    named: labels and topologies.
    message_bytes: size of a message, for the error against bytes.
    rounds: of the curves, such as `agreement.horizon`.
  """
  blocks = [
    _Block(label.replace('$', r'\$'), topology, index)  # no mathematics
    for index, (label, topology) in enumerate(named)
  ]
  lines = _lines(blocks)
  columns = max(sum(block.rounds for block in line) for line in lines)
  beside = columns <= 2  # there is room for weights beside the graphs
  columns *= 1 + beside
  side = min(4.4, 13.2 / columns)  # of a panel, in inches
  width = max(9, side * columns)
  heights = [side + 0.3 if beside else 2 * side + 0.5 for _ in lines]
  figure = Figure((width, sum(heights) + 4.0), dpi=130, layout='constrained')
  backend_agg.FigureCanvasAgg(figure)
  parts = figure.subfigures(
    len(lines) + 1, 1, height_ratios=[*heights, 4.0], squeeze=False
  )
  for part, line in zip(parts[:-1, 0], lines, strict=True):
    _draw_line(part, line, columns, beside, side)
  _draw_curves(parts[-1, 0], blocks, message_bytes, rounds, width)
  return figure


def _lines(blocks: Sequence[_Block]) -> list[list[_Block]]:
  """Fills lines with as many blocks as there are columns for."""
  lines = [[]]
  for block in blocks:
    used = sum(other.rounds for other in lines[-1])
    if used + block.rounds > _MOST_COLUMNS:
      lines.append([])
    lines[-1].append(block)
  return lines


def _draw_line(figure, line, columns, beside, side) -> None:
  widths = [block.rounds * (1 + beside) for block in line]
  left = columns - sum(widths)
  parts = figure.subfigures(
    1,
    len(line) + (left > 0),
    width_ratios=[*widths, left][: len(line) + (left > 0)],
    squeeze=False,
  )
  for part, block in zip(parts[0], line, strict=False):
    _draw_block(part, block, beside, side)


def _draw_block(figure, block, beside, side) -> None:
  topology = block.topology
  places = graph_layouts.positions(topology.links)
  shape = (1, 2 * block.rounds) if beside else (2, block.rounds)
  axes = figure.subplots(*shape, squeeze=False)
  axes = axes.reshape(block.rounds, 2) if beside else axes.T
  for t, (above, below) in enumerate(axes):
    graph_panels.draw_links(
      above, places, topology.links[t], block.colour, 0.85 * side
    )
    largest = topology.weights.max()
    graph_panels.draw_weights(below, topology.weights[t], largest, block.colour)
    if topology.period > 1:
      above.set_title(f'round {t + 1}', fontsize=9)
    below.set_title(
      f'weights, up to {topology.weights[t].max():.3g}', fontsize=9
    )
  figure.suptitle(
    _heading(block, int(_LETTERS * side * axes.size / (1 if beside else 2))),
    color=block.colour,
    fontweight='bold',
    fontsize=11,
  )


def _heading(block: _Block, width: int) -> str:
  """Returns the label, broken into lines, and how much of a period is drawn."""
  lines = ['']
  for piece in re.findall(r'[^,(]*[,(]?', block.label):
    if lines[-1] and len(lines[-1] + piece) > width:
      lines.append('')
    lines[-1] += piece
  period = block.topology.period
  if period > 1:
    drawn = '' if period == block.rounds else f', first {block.rounds} drawn'
    lines.append(f'({period} rounds{drawn})')
  return '\n'.join(lines)


def _draw_curves(figure, blocks, message_bytes, rounds, width) -> None:
  by_round, by_bytes = figure.subplots(1, 2, sharey=True)
  for block in blocks:
    errors = agreement.consensus_errors(block.topology, rounds)
    sent = agreement.bytes_sent(block.topology, len(errors) - 1, message_bytes)
    shown = np.where(errors < _EXACT, agreement.FLOOR, errors)
    for axis, x in ((by_round, np.arange(len(errors))), (by_bytes, sent)):
      axis.plot(x, shown, **block.style)
      if errors[-1] < _EXACT:
        axis.plot(x[-1], shown[-1], 'o', color=block.colour, clip_on=False)
  _decorate(by_round, 'rounds')
  _decorate(by_bytes, 'bytes sent per worker')
  by_round.set_yscale('log')
  by_round.set_ylim(max(by_round.get_ylim()[0], agreement.FLOOR), 1.3)
  by_round.xaxis.set_major_locator(ticker.MaxNLocator(8, integer=True))
  by_bytes.xaxis.set_major_locator(ticker.MaxNLocator(5))
  by_bytes.xaxis.set_major_formatter(
    ticker.FuncFormatter(lambda x, _: display.human_bytes(x))
  )
  longest = max(len(block.label) for block in blocks)
  figure.legend(
    *by_round.get_legend_handles_labels(),
    loc='outside lower center',
    ncols=max(1, int(11 * width / (longest + 8))),
    frameon=False,
    fontsize=10,
  )


def _decorate(axis, label: str) -> None:
  axis.axhline(agreement.TARGET, color='#9aa0a6', lw=0.8, ls=':')
  axis.set_title(
    'consensus error, worst case over starts', fontsize=11, loc='left'
  )
  axis.set_xlabel(label)
  axis.set_xlim(0, max(1, axis.get_xlim()[1]))
  axis.tick_params(labelleft=True)
  axis.tick_params(axis='x', pad=7)  # clear of the lowest label at the side
  axis.grid(alpha=0.25)
  axis.spines[['top', 'right']].set_visible(False)
