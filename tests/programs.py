"""Reads compiled programs: which collectives, how large, under what condition.

It works on the text that XLA prints, which is the only place to see what is
sent in the end.
"""

import collections
import dataclasses
import math
import re

COLLECTIVES = (
  'all-gather',
  'all-reduce',
  'all-to-all',
  'collective-broadcast',
  'collective-permute',
  'reduce-scatter',
)

_BYTES = {'bf16': 2, 'f16': 2, 'f32': 4, 'f64': 8, 's32': 4, 's8': 1, 'u8': 1}
_HEADER = re.compile(r'^(?:ENTRY )?%?([\w.-]+) \(.*\{$')
_INSTRUCTION = re.compile(
  r'^\s+(?:ROOT )?%?[\w.-]+ = (\(.*?\)|\S+) ([\w-]+)\((.*)$'
)
_ARRAY = re.compile(r'(\w+)\[([\d,]*)\]')
_CALLED = re.compile(
  r'(?:branch_computations|calls|to_apply|body|condition|true_computation|'
  r'false_computation)=\{?((?:%?[\w.-]+(?:, )?)+)'
)
_PAIRS = re.compile(r'source_target_pairs=\{(.*?)\}\}')


@dataclasses.dataclass(frozen=True)
class Instruction:
  """One line of a program.

  Attributes:
    name: of the operation, such as 'all-reduce'.
    shape: dimensions of the first array that it returns.
    bytes: size of this array.
    pairs: number of (source, target) pairs of a permutation that are not from
      a device to itself.
    called: names of the computations that it runs.
  """

  name: str
  shape: tuple[int, ...]
  bytes: int
  pairs: int
  called: tuple[str, ...]


class Program:
  """The compiled program of a function under `jax.jit` for some arguments."""

  def __init__(self, fn, *args):
    self._computations = collections.defaultdict(list)
    name = None
    for line in fn.lower(*args).compile().as_text().splitlines():
      if header := _HEADER.match(line):
        name = header[1]
      elif match := _INSTRUCTION.match(line):
        self._computations[name].append(_instruction(*match.groups()))

  def collectives(self, *, conditional=None):
    """Returns all collectives, or those (not) in branches of conditionals."""
    inside = self._conditional_computations()
    return [
      instruction
      for name, instructions in self._computations.items()
      for instruction in instructions
      if instruction.name in COLLECTIVES
      and conditional in (None, name in inside)
    ]

  def count(self, name: str) -> int:
    """Returns how many instructions of this name there are."""
    return sum(i.name == name for i in self._all())

  def _all(self):
    for instructions in self._computations.values():
      yield from instructions

  def _conditional_computations(self):
    """Names of computations that are run from a branch."""
    found = set()
    new = [c for i in self._all() if i.name == 'conditional' for c in i.called]
    while new:
      name = new.pop()
      if name not in found:
        found.add(name)
        new += [c for i in self._computations[name] for c in i.called]
    return found


def _instruction(result, name, rest) -> Instruction:
  array = _ARRAY.search(result)
  dtype, dims = array.groups() if array else ('', '')
  shape = tuple(int(d) for d in dims.split(',') if d)
  called = tuple(
    c.lstrip('%') for names in _CALLED.findall(rest) for c in names.split(', ')
  )
  pairs = _PAIRS.search(rest)
  crossing = [
    a != b for a, b in re.findall(r'(\d+),(\d+)', pairs[1] if pairs else '')
  ]
  return Instruction(
    name.removesuffix('-start'),
    shape,
    math.prod(shape) * _BYTES.get(dtype, 0),
    sum(crossing),
    called,
  )
