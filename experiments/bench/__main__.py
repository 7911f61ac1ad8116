"""Times decopt against hand-written programs.

  python -m experiments.bench core --json=bench.json
  python -m experiments.bench core --only=mlp16,mlp64 --repeats=30
  python -m experiments.bench mixing --json=mixing.json

The table shows the ratio of times, decopt's over that of the best hand-written
form: smaller is better. Behind that form's name stand the times of the other
forms, in multiples of its own. The JSON file gets one object a line: ``name``,
``ratio``, and ``value`` (decopt) and ``reference`` in ``unit``. Where the unit
is bytes, the ratio is that of the most memory held to the arrays alone.
"""

import contextlib
import json
import sys
from collections.abc import Iterator, Sequence

from absl import app
from absl import flags

from experiments import errors
from experiments.bench import cases
from experiments.bench import suites

_JSON = flags.DEFINE_string(
  'json', None, 'File to write, a JSON object a line.'
)
_ONLY = flags.DEFINE_list('only', [], 'Names of the cases to run; default all.')
_REPEATS = flags.DEFINE_integer(
  'repeats',
  None,
  'How often to run decopt, reference, reference, decopt; default: what each '
  'case says.',
  lower_bound=1,
)

_LINE = '{:<14}{:>7}{:>8} {:<6}{:>10}{:>10} {:<15}{}'


def main(argv: Sequence[str]) -> None:
  if len(argv) != 2:
    raise errors.UserError(
      f'name one suite, of: {", ".join(suites.SUITES)}; for example python -m '
      'experiments.bench core'
    )
  suite = argv[1]
  selected = suites.select(suite, _ONLY.value)
  with _lines(_JSON.value) as write:
    print(
      _LINE.format(
        'case', 'ratio', 'target', '', 'decopt', 'by hand', 'unit', 'best form'
      )
    )
    for case, result in suites.measured(suite, selected, _REPEATS.value):
      print(table_line(case, result), flush=True)
      write(json.dumps(result.row()))


@contextlib.contextmanager
def _lines(path: str | None) -> Iterator:
  """Yields a function that appends a line to a new file, or does nothing."""
  if path is None:
    yield lambda line: None
    return
  try:
    file = open(path, 'w', buffering=1)
  except OSError as error:
    raise errors.UserError(f'cannot write --json={path}: {error}') from error
  with file:
    yield lambda line: file.write(line + '\n')


def table_line(case: cases.Case, result: cases.Result) -> str:
  """Formats a result for people."""
  others = ', '.join(f'{name} {x:.2f}' for name, x in result.others.items())
  return _LINE.format(
    case.name,
    f'{result.ratio:.3f}',
    f'{case.target:.2f}',
    'pass' if result.ratio <= case.target else 'OVER',
    _number(result.value),
    _number(result.reference),
    result.unit,
    f'{result.form} ({others})' if others else result.form,
  )


def run() -> None:
  """Runs the binary: a `UserError` is one line, anything else a traceback."""
  try:
    app.run(main)
  except errors.UserError as error:
    print(f'error: {error}', file=sys.stderr)
    sys.exit(error.code)


def _number(value: float) -> str:
  if 1000 <= value < 1e7:
    return f'{value:,.0f}'
  return f'{value:.4g}'


if __name__ == '__main__':
  run()
