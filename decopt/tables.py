"""Numbers from .npy, .csv and .json files, with errors that say where."""

import dataclasses
import json
import pathlib

import numpy as np

MOST = 2**14  # workers: one round of weights then takes 2 GiB
KINDS = ('edges', 'adjacency', 'weights')
_OTHER_KEYS = ('workers', 'directed', 'name')


@dataclasses.dataclass(frozen=True)
class Table:
  """What a file says.

  Attributes:
    path: which file.
    numbers: float64 of any shape, finite and not empty.
    lines: for a .csv file, the line of each row, counted from 1.
    kind: 'edges', 'adjacency' or 'weights', if the file says so.
    name: likewise.
    workers: likewise, for edges.
    directed: whether edges go one way.
  """

  path: pathlib.Path
  numbers: np.ndarray
  lines: tuple[int, ...] = ()
  kind: str | None = None
  name: str | None = None
  workers: int | None = None
  directed: bool = False

  def check(self, problem: str, wrong: np.ndarray) -> None:
    """Raises for the first entry that is wrong, if any, and says where."""
    if wrong.any():
      index = np.argwhere(wrong)[0].tolist()
      where = f'line {self.lines[index[0]]}, ' if self.lines else ''
      raise ValueError(
        f'{self.path}: {where}entry {index} is '
        f'{self.numbers[tuple(index)]:.6g}, which is {problem}.'
      )


def check_ending(path: pathlib.Path) -> None:
  """Raises unless files of that name can be read and written."""
  if path.suffix.lower() not in _READERS:
    raise ValueError(
      f'{path} ends in {path.suffix or "nothing"!r}, but topologies are in '
      f'files that end in {", ".join(_READERS)}.'
    )


def read(path: pathlib.Path) -> Table:
  """The content of a file.

  Raises:
    FileNotFoundError: if there is no such file.
    ValueError: if it does not hold numbers.
  """
  check_ending(path)
  if not path.is_file():
    raise FileNotFoundError(
      f'there is no file {path}. Relative paths start at {pathlib.Path.cwd()}.'
    )
  table = _READERS[path.suffix.lower()](path)
  if not table.numbers.size and table.workers is None:
    raise ValueError(f'{path} holds no numbers. Is it torn? Write it again.')
  table.check('not finite', ~np.isfinite(table.numbers))
  return table


def _read_npy(path: pathlib.Path) -> Table:
  try:
    array = np.load(path, allow_pickle=False)
  except (ValueError, EOFError, OSError) as error:
    raise ValueError(
      f'{path} is no .npy file of numbers, or torn: {error}. Write it again '
      'with numpy.save(path, matrix).'
    ) from None
  return Table(path, _numbers(path, array))


def _read_json(path: pathlib.Path) -> Table:
  try:
    content = json.loads(_text(path))
  except json.JSONDecodeError as error:
    raise ValueError(
      f'{path}: line {error.lineno}, column {error.colno} is not JSON: '
      f'{error.msg}. Is it torn? Write it again.'
    ) from None
  if not isinstance(content, dict):
    return Table(path, _numbers(path, content))
  kinds = [key for key in KINDS if key in content]
  unknown = sorted(content.keys() - {*KINDS, *_OTHER_KEYS})
  if len(kinds) != 1 or unknown:
    raise ValueError(
      f'{path} has the keys {", ".join(content) or "(none)"}, but needs one of '
      f'{", ".join(KINDS)}, and may have {", ".join(_OTHER_KEYS)} besides.'
    )
  [kind] = kinds
  return Table(
    path,
    _numbers(path, content[kind]),
    kind=kind,
    name=_entry(path, content, 'name', str, 'a text'),
    workers=_count(path, content),
    directed=_entry(path, content, 'directed', bool, 'true or false') or False,
  )


def _read_csv(path: pathlib.Path) -> Table:
  content, kind = {}, None
  for line, text in enumerate(_text(path).splitlines(), start=1):
    values, _, comment = text.partition('#')
    if comment.strip() in KINDS:
      kind = comment.strip()
    if values.strip():
      content[line] = [value.strip() for value in values.split(',')]
  first = next(iter(content), None)
  if first and all(map(_is_title, content[first])):
    del content[first]  # titles
  rows = [_floats(path, line, values) for line, values in content.items()]
  for line, row in zip(content, rows, strict=True):
    if len(row) != len(rows[0]):
      raise ValueError(
        f'{path}: line {line} has {len(row)} numbers, but line '
        f'{next(iter(content))} has {len(rows[0])}. Is it torn? Write it again.'
      )
  return Table(path, np.array(rows), lines=tuple(content), kind=kind)


def _is_title(value: str) -> bool:
  value = value.strip('"')
  try:
    float(value)  # nan and inf are numbers, if no good ones
  except ValueError:
    return value[:1].isalpha()
  return False


def _floats(path: pathlib.Path, line: int, values: list[str]) -> list[float]:
  try:
    return [float(value) for value in values]
  except ValueError as error:
    raise ValueError(
      f'{path}: line {line} is {",".join(values)!r}: {error}. Lines have '
      'numbers with commas between them; comments start with #.'
    ) from None


def _numbers(path: pathlib.Path, content) -> np.ndarray:
  try:
    array = np.asarray(content)
  except ValueError:  # lists of unequal lengths
    array = np.asarray(None)
  if array.dtype.kind not in 'buif':
    raise ValueError(
      f'{path} must hold a matrix of real numbers, with rows of equal length.'
    )
  return array.astype(np.float64)


def _count(path: pathlib.Path, content: dict) -> int | None:
  workers = _entry(path, content, 'workers', int, 'an integer')
  if workers is not None and workers < 1:
    raise ValueError(f'{path} needs 1 or more as workers, but has {workers}.')
  return workers


def _entry(path: pathlib.Path, content: dict, key: str, kind: type, what: str):
  """A value of the object in a file, or None."""
  value = content.get(key)
  if value is not None and type(value) is not kind:
    raise ValueError(f'{path} needs {what} as {key}, but has {value!r}.')
  return value


def _text(path: pathlib.Path) -> str:
  try:
    return path.read_text(encoding='utf-8-sig')
  except UnicodeDecodeError as error:
    raise ValueError(
      f'{path} is no text: byte {error.start} is not UTF-8. Is it a .npy file?'
    ) from None


_READERS = {'.npy': _read_npy, '.csv': _read_csv, '.json': _read_json}
