"""Shows what graphs do to consensus, and what they cost.

  python -m experiments.topology --topology=ring,torus,exponential --workers=16

prints a report on each graph, and draws its links, its weights and how fast
workers on it agree. Names take arguments, as in --topology='torus(rows=2),
random_regular(degree=4), file(path=graph.csv)'; --list shows the names.
"""

import os
import pathlib
import sys
from collections.abc import Sequence

from absl import app
from absl import flags

from experiments import agreement
from experiments import command_line
from experiments import errors
from experiments import graph_plots
from experiments import graph_report
from experiments import listing
from experiments import run_directory
from experiments import topologies
from experiments import weight_rules

_TOPOLOGY = flags.DEFINE_string(
  'topology',
  'ring',
  'Names with commas between them, with arguments as in torus(rows=2).',
)
_WORKERS = flags.DEFINE_integer(
  'workers',
  None,
  'Number of workers; default that of a file or of davis_social if one is '
  f'named, else {graph_report.WORKERS}.',
  lower_bound=1,
)
_WEIGHTS = flags.DEFINE_string(
  'weights',
  None,
  'Rule that gives links other weights, such as metropolis or lazy(keep=0.8).',
)
_SEED = flags.DEFINE_integer(
  'seed', 0, 'Of random graphs that are not given one.', lower_bound=0
)
_MESSAGE_BYTES = flags.DEFINE_integer(
  'message_bytes', None, 'Size of a message; default 4.', lower_bound=1
)
_PARAMETERS = flags.DEFINE_integer(
  'parameters',
  None,
  'Numbers in a message, of 4 bytes each, instead of --message_bytes.',
  lower_bound=1,
)
_ROUNDS = flags.DEFINE_integer(
  'rounds',
  None,
  'Rounds of the curves; default as many as show the difference.',
  lower_bound=1,
)
_OUTPUT = flags.DEFINE_string(
  'output', 'topology.png', 'The picture to write, a .png; it is replaced.'
)
_LIST = flags.DEFINE_bool(
  'list', False, 'Show the names of topologies and weights, and exit.'
)


def main(argv: Sequence[str]) -> None:
  if argv[1:]:
    raise errors.UserError(
      f"unexpected argument '{argv[1]}'; topologies are --topology=NAME,NAME, "
      'in quotes if there are spaces or brackets'
    )
  if _LIST.value:
    print(listing.described('--topology', topologies.TOPOLOGIES))
    print()
    print(listing.described('--weights', weight_rules.WEIGHTS))
    return
  output = _output(pathlib.Path(_OUTPUT.value))
  message_bytes = _message_bytes()
  named = graph_report.read(
    _TOPOLOGY.value, _WORKERS.value, _WEIGHTS.value, _SEED.value
  )
  reports = [topology.report(message_bytes) for _, topology in named]
  graph_report.show(named, reports, message_bytes)
  rounds = _ROUNDS.value or agreement.horizon(reports)
  figure = graph_plots.comparison(named, message_bytes, rounds)
  try:
    run_directory.write_atomically(output, graph_plots.png(figure))
  except OSError as error:
    raise errors.UserError(
      f'cannot write {output} ({error.strerror}); choose another --output'
    ) from error
  print(f'drawn in {output.absolute()}')


def _message_bytes() -> int:
  if _PARAMETERS.value is None:
    return 4 if _MESSAGE_BYTES.value is None else _MESSAGE_BYTES.value
  if _MESSAGE_BYTES.value is not None:
    raise errors.UserError(
      '--parameters and --message_bytes both say how large a message is; give '
      'one of them'
    )
  return 4 * _PARAMETERS.value


def _output(path: pathlib.Path) -> pathlib.Path:
  """Returns the path of the picture, or says at once what is wrong with it."""
  if path.suffix.lower() != '.png':
    raise errors.UserError(
      f"--output is '{path}'; a picture is a .png, for example topology.png"
    )
  for problem, wrong in (
    ('it is a directory', os.path.isdir(path)),
    (f'there is no directory {path.parent}', not os.path.isdir(path.parent)),
  ):
    if wrong:
      raise errors.UserError(
        f'cannot write {path}: {problem}; choose another --output'
      )
  return path


def run() -> None:
  """Runs the binary: a `UserError` is one line, anything else a traceback."""
  try:
    app.run(main, flags_parser=command_line.parse)
  except errors.UserError as error:
    print(f'error: {error}', file=sys.stderr)
    sys.exit(error.code)
  except KeyboardInterrupt:
    print('interrupted', file=sys.stderr)
    sys.exit(130)


if __name__ == '__main__':
  run()
