"""Topologies from files and into files: .npy, .csv and .json."""

import json
import pathlib

import numpy as np

from decopt import tables
from decopt import weights as weights_lib
from decopt.topology import Topology
from decopt.weights import reading

_CLOSE = 1e-3  # sums that are meant to be 1, even if Topology refuses them


def load_topology(
  path, *, kind: str | None = None, name: str | None = None
) -> Topology:
  r"""Reads a graph, with its weights or without.

  A file holds one of three kinds of content.

  * ``edges``, integers `[links, 2]`: worker ``u`` is linked to ``v``, counted
    from 0 to the largest number; each number must occur. As a .json file also
    ``{"workers": 4, "edges": [[0, 1], [1, 2]], "directed": true}``, of which
    only edges must be there; some of so many workers may be without links. If
    directed, ``u`` sends to ``v``.
  * ``adjacency``, 0 and 1 `[workers, workers]`: row ``u`` has 1 in column ``v``
    if ``u`` sends to ``v``. The diagonal is ignored.
  * ``weights``, `[workers, workers]` or, but for .csv, `[period, workers,
    workers]`: what receiver ``i``, the row, puts on sender ``j``,

    .. math:: x_i \leftarrow \textstyle\sum_j W_{ij} x_j .

  Links that go both ways get the weights of `decopt.metropolis`, others those
  of `decopt.column_stochastic`, for push-sum.

  The kind is read off the content. Three dimensions are weights, and so is a
  square matrix of which all rows, or all columns, sum to 1. A square matrix of
  0 and 1 is an adjacency, and two columns of integers are edges. A matrix that
  is more than one of these, such as the identity or [[0, 1], [1, 0]], is
  refused unless ``kind`` is given.

  A .csv file has a line for each row, with commas between numbers. A first line
  of words is taken for titles, what follows ``#`` for a comment; a comment of
  one word, ``# weights``, says the kind. A .json file has nested lists, or an
  object with one of the three kinds as its key, and possibly a name.

  Args:
    path: a file that ends in .npy, .csv or .json.
    kind: 'edges', 'adjacency' or 'weights', whatever the content looks like.
    name: of the topology; default the one in the file, or else the file's.

  Returns:
    A `Topology`.

  Raises:
    FileNotFoundError: if there is no such file.
    TypeError: if `name` is no string.
    ValueError: if its content is none of the above, with the line or the entry,
      and what to do about it.

  Example:
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / 'triangle.csv'
    >>> _ = path.write_text('0,1\n1,2\n2,0\n')
    >>> load_topology(path)
    Topology('triangle', workers=3, degree=2, period=1, spectral_gap=1)
  """
  path = pathlib.Path(path)
  if name is not None and not isinstance(name, str):
    raise TypeError(f'load_topology needs a string as name, but got {name!r}.')
  if kind not in (None, *tables.KINDS):
    raise ValueError(
      f'load_topology needs one of {", ".join(tables.KINDS)} as kind, but got '
      f'{kind!r}.'
    )
  table = tables.read(path)
  kind = kind or table.kind or _kind_of(table)
  if kind != 'edges' and (table.workers is not None or table.directed):
    raise ValueError(
      f"{path} has 'workers' or 'directed', which belong to edges, but its "
      f'numbers are taken for {kind}. Leave them out.'
    )
  build = {'edges': _of_edges, 'adjacency': _of_adjacency, 'weights': _weights}
  return build[kind](table, name or table.name or path.stem)


def save_topology(topology: Topology, path) -> None:
  """Writes weights, such that `load_topology` gives back each bit of them.

  Args:
    topology: what to write; its name is kept in .json files only.
    path: a file that ends in .npy, .json or, for a period of 1, .csv.

  Raises:
    TypeError: if `topology` is none.
    ValueError: for another ending, or for a longer period and .csv.

  Example:
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / 'star.json'
    >>> save_topology(decopt.star(4), path)
    >>> decopt.load_topology(path) == decopt.star(4)
    True
  """
  reading.check_topology('save_topology', topology)
  path = pathlib.Path(path)
  tables.check_ending(path)
  ending = path.suffix.lower()
  if ending == '.npy':
    with path.open('wb') as file:  # numpy would add an ending in small letters
      np.save(file, topology.weights)
  elif ending == '.json':
    content = {'name': topology.name, 'weights': topology.weights.tolist()}
    path.write_text(json.dumps(content), encoding='utf-8')
  elif topology.period == 1:
    rows = [','.join(map(repr, row)) for row in topology.weights[0].tolist()]
    path.write_text('\n'.join(['# weights', *rows, '']), encoding='utf-8')
  else:
    raise ValueError(
      f'a .csv file holds one matrix, but topology {topology.name!r} has a '
      f'period of {topology.period} rounds. Save it as '
      f'{path.with_suffix(".npy").name} or {path.with_suffix(".json").name}.'
    )


def _kind_of(table: tables.Table) -> str:
  """The one kind that the content can be."""
  numbers = table.numbers
  square = numbers.ndim >= 2 and numbers.shape[-1] == numbers.shape[-2]
  sums = [np.abs(numbers.sum(axis=a) - 1).max() for a in (-1, -2) if square]
  whole = bool((numbers == np.round(numbers)).all())
  possible = {
    'edges': numbers.ndim == 2 and numbers.shape[1] == 2 and whole,
    'adjacency': square
    and numbers.ndim == 2
    and bool(np.isin(numbers, (0, 1)).all()),
    'weights': square and (numbers.ndim == 3 or min(sums) <= _CLOSE),
  }
  kinds = [kind for kind, fits in possible.items() if fits]
  if len(kinds) == 1:
    return kinds[0]
  if kinds:
    raise ValueError(
      f'{table.path} could be {" or ".join(kinds)}. Say which: '
      f'decopt.load_topology(path, kind={kinds[0]!r}).'
    )
  raise ValueError(
    f'{table.path} holds numbers of shape {list(numbers.shape)} that are '
    'neither edges (two columns of integers), nor an adjacency (square, of 0 '
    'and 1), nor weights (square, with rows or columns that sum to 1). Give '
    'kind to be told what is wrong with it.'
  )


def _of_edges(table: tables.Table, name: str) -> Topology:
  edges = table.numbers
  if not edges.size:
    edges = edges.reshape(0, 2)
  if edges.ndim != 2 or edges.shape[1] != 2:
    raise ValueError(
      f'{table.path} holds numbers of shape {list(edges.shape)}, but edges '
      'have two columns.'
    )
  table.check('not an integer', edges != np.round(edges))
  table.check('negative; workers are counted from 0', edges < 0)
  workers = table.workers or int(edges.max()) + 1
  _check_count(table, workers)
  table.check(
    f'out of range for {workers} workers, which are counted from 0',
    edges >= workers,
  )
  if table.workers is None:
    _check_all_occur(table, workers)
  sender, receiver = edges.astype(int).T
  links = np.zeros((workers, workers), bool)
  links[receiver, sender] = True
  return _of_links(links if table.directed else links | links.T, name)


def _check_count(table: tables.Table, workers: int) -> None:
  if workers > tables.MOST:
    raise ValueError(
      f'{table.path} is about {workers:.6g} workers; up to {tables.MOST:,} are '
      'read, whose weights take 2 GiB a round. Count workers from 0, without '
      'holes.'
    )


def _check_all_occur(table: tables.Table, workers: int) -> None:
  missing = np.setdiff1d(np.arange(workers), table.numbers)
  if len(missing):
    raise ValueError(
      f'{table.path} has no link of worker {missing[0]}, though numbers go up '
      f'to {workers - 1}. Count workers from 0, without holes; or say how many '
      f'there are, in a .json file: {{"workers": {workers}, "edges": ...}}.'
    )


def _of_adjacency(table: tables.Table, name: str) -> Topology:
  _check_square(table, dimensions=(2,))
  table.check('neither 0 nor 1', ~np.isin(table.numbers, (0, 1)))
  return _of_links(table.numbers.T > 0, name)


def _of_links(links: np.ndarray, name: str) -> Topology:
  links = links & ~np.eye(len(links), dtype=bool)
  if (links == links.T).all():
    return weights_lib.metropolis_hastings(name, links)
  return weights_lib.uniform_columns(name, links)


def _weights(table: tables.Table, name: str) -> Topology:
  _check_square(table, dimensions=(2, 3))
  table.check('negative', table.numbers < 0)
  try:
    return Topology(table.numbers, name)
  except ValueError as error:
    raise ValueError(f'{table.path}: {error}') from None


def _check_square(table: tables.Table, dimensions: tuple[int, ...]) -> None:
  shape = table.numbers.shape
  if len(shape) not in dimensions or shape[-1] != shape[-2]:
    raise ValueError(
      f'{table.path} holds numbers of shape {list(shape)}, but needs a square '
      'matrix, with a row and a column for each worker.'
    )
