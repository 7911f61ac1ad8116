"""Times decopt against hand-written programs.

  python -m experiments.bench core --json=bench.json
  python -m experiments.bench core --only=mlp16,mlp64 --rounds=30

The table shows the ratio of times, decopt's over that of the best hand-written
form: smaller is better. The JSON file gets one object a line with ``name``,
``ratio``, and ``value`` (decopt) and ``reference`` in ``unit``.
"""

import json
from collections.abc import Sequence

from absl import app
from absl import flags

from experiments import errors
from experiments.bench import cases
from experiments.bench import suites

_JSON = flags.DEFINE_string(
  'json', None, 'File to write, a JSON object a line.'
)
_ONLY = flags.DEFINE_list('only', [], 'Names of the cases to run; default all.')
_ROUNDS = flags.DEFINE_integer(
  'rounds',
  None,
  'How often to run decopt, reference, reference, decopt; default: what each '
  'case says.',
  lower_bound=1,
)

_LINE = '{:<14}{:>7}{:>8}  {:<5}{:>10}{:>10}  {:<15}{:<12}{}'


def main(argv: Sequence[str]) -> None:
  if len(argv) != 2:
    known = ', '.join(suites.SUITES)
    raise app.UsageError(f'name one suite of: {known}')
  try:
    selected = suites.select(argv[1], _ONLY.value)
  except errors.UserError as error:
    raise app.UsageError(str(error)) from error
  run(argv[1], selected)


def run(suite, selected):
  """Measures cases one by one, prints a table and writes JSON lines."""
  print(
    _LINE.format(
      'case', 'ratio', 'target', '', 'decopt', 'by hand', 'unit', 'form', ''
    )
  )
  file = open(_JSON.value, 'w') if _JSON.value else None
  try:
    for case, result in suites.measured(suite, selected, _ROUNDS.value):
      print(table_line(case, result), flush=True)
      if file:
        print(json.dumps(result.row()), file=file, flush=True)
  finally:
    if file:
      file.close()


def table_line(case: cases.Case, result: cases.Result) -> str:
  """Formats a result for people."""
  return _LINE.format(
    case.name,
    f'{result.ratio:.3f}',
    f'{case.target:.2f}',
    'pass' if result.ratio <= case.target else 'OVER',
    f'{result.value:.4g}',
    f'{result.reference:.4g}',
    result.unit,
    result.form,
    case.description,
  )


if __name__ == '__main__':
  app.run(main)
