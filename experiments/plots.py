"""The curves of a run as one PNG, drawn from its metrics."""

import io
from collections.abc import Sequence
from typing import Any

from matplotlib import ticker
from matplotlib.backends import backend_agg
from matplotlib.figure import Figure

from experiments import display

_COLOURS = {
  'training': '#9aa0a6',
  'averaged model': '#1a73e8',
  'mean of the workers': '#188038',
  'worst worker': '#d93025',
}
_SUFFIXES = {
  'averaged model': 'averaged',
  'mean of the workers': 'mean',
  'worst worker': 'worst',
}


def curves(rows: Sequence[dict[str, Any]], title: str) -> bytes:
  """Draws loss and accuracy against steps and bytes, and consensus distance.

  Args:
    rows: lines of ``metrics.jsonl``.
    title: says what ran.

  Returns:
    A PNG.
  """
  figure = Figure(figsize=(12, 6.4), dpi=120, layout='constrained')
  backend_agg.FigureCanvasAgg(figure)
  axes = figure.subplot_mosaic(
    [
      ['loss_steps', 'loss_bytes', 'consensus'],
      ['accuracy_steps', 'accuracy_bytes', 'legend'],
    ]
  )
  for name, key, label in (
    ('steps', 'step', 'steps'),
    ('bytes', 'bytes_sent_per_worker', 'bytes sent per worker'),
  ):
    _loss(axes[f'loss_{name}'], rows, key, label)
    _accuracy(axes[f'accuracy_{name}'], rows, key, label)
  _consensus(axes['consensus'], rows)
  _legend(axes['legend'], axes['loss_steps'])
  figure.suptitle(title, fontsize=12, fontweight='bold')
  return _png(figure)


def _loss(axis, rows, key, label):
  axis.plot(
    *_points(rows, key, 'loss'),
    color=_COLOURS['training'],
    lw=1,
    label='training, mean of the workers',
  )
  _held_out(axis, rows, key, 'loss')
  _logarithmic(axis)
  _decorate(axis, key, label, 'loss')


def _accuracy(axis, rows, key, label):
  _held_out(axis, rows, key, 'accuracy')
  _decorate(axis, key, label, 'held-out accuracy')


def _held_out(axis, rows, key, metric):
  for name, suffix in _SUFFIXES.items():
    x, y = _points(rows, key, f'{metric}_{suffix}')
    axis.plot(x, y, color=_COLOURS[name], label=name, marker='o', ms=3)


def _consensus(axis, rows):
  x, y = _points(rows, 'step', 'consensus_distance')
  axis.plot(x, y, color='#8430ce', lw=1.2)
  if min(y) > 0:  # it is 0 where all workers are equal
    _logarithmic(axis)
  _decorate(axis, 'step', 'steps', 'consensus distance')


def _logarithmic(axis):
  axis.set_yscale('log')
  low, high = axis.get_ylim()
  if high < 8 * low:  # less than a decade has too few round numbers
    axis.yaxis.set_major_locator(ticker.MaxNLocator(6))
  else:
    marks = (1, 2, 5) if high < 100 * low else (1,)
    axis.yaxis.set_major_locator(ticker.LogLocator(subs=marks))
  axis.yaxis.set_major_formatter(ticker.FuncFormatter(lambda y, _: f'{y:g}'))
  axis.yaxis.set_minor_formatter(ticker.NullFormatter())


def _decorate(axis, key, label, quantity):
  axis.set_xlabel(label)
  axis.set_title(quantity, fontsize=11, loc='left')
  axis.grid(alpha=0.25)
  axis.spines[['top', 'right']].set_visible(False)
  axis.set_xlim(left=0)
  if key != 'step':
    axis.xaxis.set_major_formatter(
      ticker.FuncFormatter(lambda x, _: display.human_bytes(x))
    )
    axis.xaxis.set_major_locator(ticker.MaxNLocator(5))


def _legend(axis, source):
  axis.axis('off')
  handles, labels = source.get_legend_handles_labels()
  axis.legend(handles, labels, loc='center', frameon=False, fontsize=11)


def _points(rows, x, y):
  """Returns what the rows that have both fields say about them."""
  found = [(row[x], row[y]) for row in rows if x in row and y in row]
  return [a for a, _ in found], [b for _, b in found]


def _png(figure) -> bytes:
  buffer = io.BytesIO()
  figure.savefig(buffer, format='png')
  return buffer.getvalue()
