"""Topologies from the text of a flag, and what there is to say about them."""

import re
from collections.abc import Sequence

from rich import box
from rich import console as rich_console
from rich import table as rich_table
from rich import text as rich_text

import decopt
from experiments import calls
from experiments import display
from experiments import errors
from experiments import sections
from experiments import topologies

#: Workers of topologies that do not come with a number of their own.
WORKERS = 16

#: Width of the table where the output is not a terminal, for long names.
_WIDTH = 200
#: Width from which on columns are set apart.
_ROOMY = 110

Named = tuple[str, decopt.Topology]


def read(
  text: str,
  workers: int | None = None,
  weights: str | None = None,
  seed: int = 0,
) -> list[Named]:
  """Builds the topologies that ``--topology`` names.

  Args:
    text: names with commas between them, with arguments as in
      ``'ring,torus(rows=2)'``.
    workers: of each of them; default the number that the first of them comes
      with, such as that of a file, or else `WORKERS`.
    weights: a rule of `experiments.weight_rules` for those that name none.
    seed: of random graphs that name none.

  Returns:
    What each is called in the text, with weights of all, and the topology.

  Raises:
    UserError: for text that is no list of names, and for names, arguments and
      numbers of workers that do not exist.
  """
  given = {'weights': weights, 'seed': seed}
  named = []
  try:
    found = calls.parse(text)
    if workers is None:
      own = (topologies.own_number(call.section) for call in found)
      workers = next(filter(None, own), WORKERS)
    for call in found:
      section = _allowed(given, call.name) | call.section
      label = call.text
      if weights is not None and 'weights' not in call.arguments:
        label = f'{label}, {weights}'
      named.append((label, topologies.build(section, workers)))
  except errors.UserError as error:
    raise errors.UserError(_without_config(str(error))) from error
  return named


def _allowed(given, name: str):
  """Returns what is given for all topologies and this one takes."""
  if name not in topologies.TOPOLOGIES:
    return {}
  function, _ = topologies.TOPOLOGIES[name]
  takes = (*sections.parameters(function), *topologies.RESERVED)
  return {
    key: value
    for key, value in given.items()
    if key in takes and value is not None
  }


def show(
  named: Sequence[Named],
  reports: Sequence[decopt.Report],
  message_bytes: float,
  console: rich_console.Console | None = None,
) -> None:
  """Prints the report on one topology, or a table of several."""
  console = console or display.make_console()
  if len(reports) == 1:
    display.say(str(reports[0]), console)
    return
  display.say(
    f'{reports[0].workers} workers, messages of '
    f'{display.human_bytes(message_bytes)}; what a worker sends is the mean',
    console,
  )
  if not console.is_terminal:
    console.width = _WIDTH
  space = 1 if console.width >= _ROOMY else 0
  console.print(_table(named, reports, space))


def _table(named, reports, space: int) -> rich_table.Table:
  table = rich_table.Table(
    box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, space)
  )
  table.add_column('topology', overflow='fold', min_width=14)
  for heading in (
    'spectral\ngap',
    'rounds\nto 1e-3',
    'effective\nneigh-\nbours',
    'degree',
    'messages\na round',
    'bytes\na round',
    'dia-\nmeter',
    'exact\nafter',
  ):
    table.add_column(heading, justify='right', no_wrap=True)
  for (label, topology), report in zip(named, reports, strict=True):
    table.add_row(
      rich_text.Text(label),
      f'{report.spectral_gap:.4g}',
      _count(report.rounds_to),
      f'{report.effective_neighbours:.3g}',
      str(topology.degree),
      f'{report.messages_per_round.mean:.3g}',
      display.human_bytes(report.bytes_per_round.mean),
      _count(report.diameter),
      _count(report.exact_after),
    )
  return table


def _count(number: int | None) -> str:
  return 'never' if number is None else f'{number:,}'


def _without_config(text: str) -> str:
  """Says in words of the flags what is said in fields of a config."""
  for pattern, replacement in (
    (r' \(config\.topology[.\w]+\)', ''),
    (r'--config\.topology\.(\w+)=\.\.\.', r'\1=..., in brackets after it'),
    (r'config\.topology(: |\.)', ''),
    (r'config\.workers', '--workers'),
  ):
    text = re.sub(pattern, replacement, text)
  return text
