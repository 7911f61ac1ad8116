"""Calls as text: ``torus(rows=2, columns=8)`` names a function and arguments.

A config says the same in a section, ``{name: 'torus', rows: 2, columns: 8}``.
Where there is room for one line only, on a command line or for a topology
inside of another, it is written as the call, and read here.
"""

import ast
import dataclasses
import re
from collections.abc import Iterator
from typing import Any

from experiments import errors

_EXAMPLE = 'ring,torus(rows=2,columns=8)'
_CLOSES = {')': '(', ']': '[', '}': '{'}


@dataclasses.dataclass(frozen=True)
class Call:
  """A name with arguments.

  Attributes:
    name: of what is called.
    arguments: by name; words without quotes are strings.
    text: as it was written.
  """

  name: str
  arguments: dict[str, Any]
  text: str

  @property
  def section(self) -> dict[str, Any]:
    """The same as a section of a config."""
    return {'name': self.name, **self.arguments}


def parse(text: str) -> list[Call]:
  """Reads calls with commas between them.

  Arguments have names, and values that Python would read, or words: numbers,
  ``True``, ``g.csv``, ``'a name, with a comma'``, ``(ring, star)``.

  Raises:
    UserError: for what is no call, with the character where that shows.

  Example:
    >>> parse('ring, torus(rows=2, columns=8)')[1].section
    {'name': 'torus', 'rows': 2, 'columns': 8}
    >>> [call.arguments for call in parse('two_level(between=ring)')]
    [{'between': 'ring'}]
  """
  if not isinstance(text, str):
    raise errors.UserError(f'{text!r} is no name; write for example {_EXAMPLE}')
  text = _without_brackets(text)
  return [_call(text, start, end) for start, end in _pieces(text, 0, len(text))]


def parse_one(text: str) -> Call:
  """Reads exactly one call."""
  found = parse(text)
  if found[1:]:
    raise errors.UserError(f"'{text}' is more than one; only one can be given")
  return found[0]


def _without_brackets(text: str) -> str:
  """Returns ``ring, star`` for ``(ring, star,)``."""
  stripped = text.strip()
  if stripped[:1] in ('(', '[') and _CLOSES.get(stripped[-1]) == stripped[0]:
    return stripped[1:-1].strip().removesuffix(',')
  return text


def _call(text: str, start: int, end: int) -> Call:
  piece = text[start:end]
  if not piece:
    raise _wrong(text, start, 'a name is missing')
  match = re.fullmatch(r'([A-Za-z_]\w*)\s*(?:(\()(.*)\))?', piece, re.DOTALL)
  if match is None:
    after = re.match(r'([A-Za-z_]\w*\s*)?', piece).end()
    raise _wrong(
      text, start + after, f"'{piece}' is no name(argument=value, ...)"
    )
  arguments = {}
  inside = (start + match.start(3), start + match.end(3))
  if match[3] and match[3].strip():
    for first, last in _pieces(text, *inside):
      key, value = _argument(text, first, last)
      if key in arguments:
        raise _wrong(text, first, f"'{key}' is given twice")
      if key == 'name':
        raise _wrong(text, first, "'name' is no argument")
      arguments[key] = value
  return Call(match[1], arguments, piece)


def _argument(text: str, start: int, end: int) -> tuple[str, Any]:
  match = re.fullmatch(r'([A-Za-z_]\w*)\s*=\s*(.+)', text[start:end], re.DOTALL)
  if match is None:
    problem = 'an argument is missing'
    if start < end:
      problem = f"'{text[start:end]}' is no argument=value"
    raise _wrong(text, start, problem)
  try:
    return match[1], ast.literal_eval(match[2])
  except (ValueError, SyntaxError):  # a word, such as the path of a file
    return match[1], match[2]


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
  """Yields where the pieces between commas begin and end, without spaces."""
  commas = [*_commas(text, start, end), end]
  for comma in commas:
    piece = text[start:comma]
    stripped = piece.strip()
    first = start + len(piece) - len(piece.lstrip())
    yield (first, first + len(stripped)) if stripped else (start, start)
    start = comma + 1


def _commas(text: str, start: int, end: int) -> Iterator[int]:
  """Yields the commas outside of brackets and quotes."""
  quote, brackets = None, []
  for place in range(start, end):
    character = text[place]
    if quote is not None:
      quote = None if character == text[quote] else quote
    elif character in '\'"':
      quote = place
    elif character in _CLOSES.values():
      brackets.append(place)
    elif character in _CLOSES:
      if not brackets or text[brackets.pop()] != _CLOSES[character]:
        raise _wrong(text, place, f"'{character}' closes nothing")
    elif character == ',' and not brackets:
      yield place
  for place in [quote] * (quote is not None) + brackets:
    raise _wrong(text, place, f"'{text[place]}' is not closed")


def _wrong(text: str, place: int, problem: str) -> errors.UserError:
  return errors.UserError(
    f"{problem} (character {place + 1} of '{text}'); write for example "
    f'{_EXAMPLE}'
  )
