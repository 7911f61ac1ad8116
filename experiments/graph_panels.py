"""One round of a topology in two panels: a graph of links, a map of weights."""

import itertools
import math

import numpy as np
from matplotlib import collections
from matplotlib import colors
from matplotlib import patches
from matplotlib import ticker

_GREY = '#5f6368'
_EDGE = 1.22  # of the panel, in units of the places
_LARGEST = 0.09  # radius of a worker in these units
_READABLE = 100  # workers
_MOST_LINKS = 20_000
_NUMBERS_UP_TO = 8  # workers, for whom a weight has room for its number


def draw_links(
  axis, places: np.ndarray, links: np.ndarray, colour, side: float
) -> None:
  """Draws workers, lines for links in both directions, arrows for others.

  Of more than `_READABLE` workers arrows would be dots: all links are lines.
  Of more than `_MOST_LINKS` links only the number is given.

  Args:
    axis: of matplotlib.
    places: float `[workers, 2]`, of the workers.
    links: bool `[workers, workers]`, `[receiver, sender]`.
    colour: of links.
    side: of the panel, in inches.
  """
  radius = _radius(places)
  points = 72 * side / (2 * _EDGE)  # of a unit of the axis
  width = float(np.clip(12 / max(1, links.sum()) ** 0.5, 0.4, 1.8))
  straight = []
  readable = len(places) <= _READABLE
  drawn = np.argwhere(links)
  if len(drawn) > _MOST_LINKS:
    axis.text(0, 0, f'{len(drawn):,} links', ha='center', color=colour)
    drawn = drawn[:0]
  for receiver, sender in drawn.tolist():
    both_ways = links[sender, receiver]
    if both_ways and receiver > sender:
      continue  # drawn from the other end
    ends = places[sender], places[receiver]
    bend = _bend(*ends, places, radius) if readable else 0
    if (both_ways and not bend) or not readable:
      straight.append(ends)
      continue
    axis.add_patch(
      patches.FancyArrowPatch(
        *ends,
        arrowstyle='-' if both_ways else '-|>',
        connectionstyle=f'arc3,rad={bend}',
        mutation_scale=float(np.clip(5 * width + 2, 4, 9)),
        shrinkA=radius * points,
        shrinkB=radius * points,
        lw=width,
        color=colour,
        zorder=1,
      )
    )
  axis.add_collection(
    collections.LineCollection(straight, colors=colour, lw=width, zorder=1)
  )
  _draw_workers(axis, places, radius, points)
  axis.set(xlim=(-_EDGE, _EDGE), ylim=(-_EDGE, _EDGE), aspect='equal')
  axis.axis('off')


def _draw_workers(axis, places, radius: float, points: float) -> None:
  """Draws circles with numbers, outside of them if they are small."""
  axis.add_collection(
    collections.EllipseCollection(
      *[2 * radius] * 2,
      0,
      units='xy',
      offsets=places,
      offset_transform=axis.transData,
      facecolor='white',
      edgecolor=_GREY,
      lw=0.8,
      zorder=2,
    )
  )
  size = 1.1 * radius * points  # of the font
  inside = size >= 4.5
  stride = 1
  if not inside:
    if not np.allclose(np.linalg.norm(places, axis=1), 1):
      return
    size = 6
    stride = math.ceil(len(places) * 9 / (2 * np.pi * 1.1 * points))
  for worker in range(0, len(places), stride):
    axis.annotate(
      str(worker),
      places[worker] * (1 if inside else 1 + radius + 4 / points),
      ha='center',
      va='center_baseline' if inside else 'center',
      fontsize=size,
      color='#202124',
      zorder=3,
    )


def _radius(places) -> float:
  """Returns a radius for the circles of workers that leaves room for links."""
  if len(places) == 1:
    return _LARGEST
  apart = np.linalg.norm(places[:, None] - places, axis=-1)
  nearest = np.sort(apart, axis=1)[:, 1]
  return min(_LARGEST, 0.35 * float(np.quantile(nearest, 0.2)))


def draw_weights(axis, weights: np.ndarray, largest: float, colour) -> None:
  """Draws a matrix of weights: receivers down, senders to the right.

  Args:
    axis: of matplotlib.
    weights: float `[workers, workers]`.
    largest: weight of the topology, which gets the full colour.
    colour: of that weight; 0 is white.
  """
  workers = len(weights)
  shades = colors.LinearSegmentedColormap.from_list('', ['white', colour])
  # Square roots keep the small weights of a hub apart from 0.
  shade = colors.PowerNorm(0.5, vmin=0, vmax=largest)
  axis.imshow(weights, cmap=shades, norm=shade)
  if workers <= _NUMBERS_UP_TO:
    for receiver, sender in itertools.product(range(workers), repeat=2):
      weight = weights[receiver, sender]
      if weight > 0:
        axis.text(
          sender,
          receiver,
          f'{weight:.2f}'.removeprefix('0'),
          ha='center',
          va='center',
          fontsize=8,
          color='white' if weight > 0.4 * largest else '#202124',
        )
  axis.set_xlabel('sender', fontsize=9, labelpad=1)
  axis.set_ylabel('receiver', fontsize=9, labelpad=1)
  axis.tick_params(labelsize=8, length=2)
  for ticks in (axis.xaxis, axis.yaxis):
    ticks.set_major_locator(ticker.MaxNLocator(5, integer=True, min_n_ticks=1))
  axis.spines[:].set_color('#bdc1c6')


def _bend(start, end, places, radius: float) -> float:
  """Returns how to bend a line that would run into other workers, else 0."""
  along = end - start
  length = np.linalg.norm(along)
  if length < 1e-9:
    return 0.0
  offsets = places - start
  fraction = offsets @ along / length**2
  aside = (offsets[:, 0] * along[1] - offsets[:, 1] * along[0]) / length
  between = (fraction > 0.02) & (fraction < 0.98)
  near = aside[between & (np.abs(aside) < radius)]
  if not near.size:
    return 0.0
  return -0.22 if near.mean() > 1e-6 else 0.22
