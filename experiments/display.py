"""What a person sees of a run: a line or a bar while it runs, then a table."""

import pathlib
from collections.abc import Mapping
from typing import Any

from rich import box
from rich import console as rich_console
from rich import progress as rich_progress
from rich import table as rich_table

#: Whether consoles made from now on write nothing.
_silent = False


class Display:
  """A progress bar on a terminal, plain lines elsewhere.

  Use it as a context, from the first step to the last.

  Args:
    steps: of the whole run.
    start: steps that are already done.
    console: where to write; default the standard output.
  """

  def __init__(
    self,
    steps: int,
    start: int = 0,
    console: rich_console.Console | None = None,
  ):
    self._steps = steps
    self._console = console or make_console()
    self._bar = None
    if self._console.is_terminal:
      self._bar = _bar(self._console)
      self._task = self._bar.add_task(
        '', total=steps, completed=start, loss='compiling ...', rate=''
      )

  def __enter__(self):
    if self._bar is not None:
      self._bar.start()
    return self

  def __exit__(self, *unused):
    if self._bar is not None:
      self._bar.stop()

  def advance(self, step: int) -> None:
    """Moves the bar; steps between two reports make no line."""
    if self._bar is not None:
      self._bar.update(self._task, completed=step)

  def report(self, row: Mapping[str, Any]) -> None:
    """Shows a row of metrics, see `experiments.run_directory.METRICS`."""
    left = (self._steps - row['step']) / row['steps_per_second']
    rate = f'{row["steps_per_second"]:,.0f} steps/s, {duration(left)} left'
    numbers = (
      f'loss {row["loss"]:.4f}  consensus {row["consensus_distance"]:.3g}'
    )
    if self._bar is not None:
      self._bar.update(
        self._task, completed=row['step'], loss=numbers, rate=rate
      )
      return
    held_out = ''
    if 'accuracy_averaged' in row:
      held_out = f'  held-out accuracy {row["accuracy_averaged"]:.4f}'
    width = len(str(self._steps))
    say(
      f'step {row["step"]:{width}}/{self._steps}  {numbers}  {rate}{held_out}',
      self._console,
    )


def _bar(console: rich_console.Console) -> rich_progress.Progress:
  return rich_progress.Progress(
    rich_progress.TextColumn('step {task.completed:.0f}/{task.total:.0f}'),
    rich_progress.BarColumn(bar_width=None),
    rich_progress.TextColumn('{task.fields[loss]}'),
    rich_progress.TextColumn('[cyan]{task.fields[rate]}'),
    console=console,
    expand=True,
  )


def make_console() -> rich_console.Console:
  """Returns the console of the standard output, without guesses at markup."""
  return rich_console.Console(highlight=False, soft_wrap=False, quiet=_silent)


def silence() -> None:
  """Keeps this process from writing: another one of the run does."""
  global _silent
  _silent = True


def say(text: str, console: rich_console.Console | None = None) -> None:
  """Prints a line as it is, at once, however long it is."""
  console = console or make_console()
  console.print(text, markup=False, soft_wrap=True)
  console.file.flush()


def show_summary(
  summary: Mapping[str, Any],
  curves: pathlib.Path,
  console: rich_console.Console | None = None,
) -> None:
  """Prints the table at the end of a run.

  Args:
    summary: as in ``summary.json``.
    curves: path of the plot.
    console: where to print; default the standard output.
  """
  console = console or make_console()
  table = rich_table.Table(box=box.SIMPLE_HEAD, pad_edge=False)
  table.add_column('on held-out examples')
  table.add_column('loss', justify='right')
  table.add_column('accuracy', justify='right')
  for label, suffix in (
    ('averaged model', 'averaged'),
    ('mean of the workers', 'mean'),
    ('worst worker', 'worst'),
  ):
    table.add_row(
      label,
      f'{summary[f"loss_{suffix}"]:.4f}',
      f'{summary[f"accuracy_{suffix}"]:.4f}',
    )
  console.print(table)
  for label, value in (
    ('consensus distance', f'{summary["consensus_distance"]:.3g}'),
    ('bytes sent per worker', human_bytes(summary['bytes_sent_per_worker'])),
    (
      'seconds',
      f'{summary["seconds"]:.1f} of training, {summary["steps"]:,} steps',
    ),
    ('curves', str(curves)),
  ):
    say(f'{label:22} {value}', console)


def human_bytes(number: float) -> str:
  """Returns a number of bytes with three digits and a unit.

  Example:
    >>> human_bytes(0), human_bytes(1_234_567), human_bytes(999)
    ('0 B', '1.23 MB', '999 B')
  """
  units = ('B', 'kB', 'MB', 'GB', 'TB', 'PB')
  power = 0
  while number >= 999.5 and power < len(units) - 1:
    number, power = number / 1000, power + 1
  digits = f'{number:.3g}' if number else '0'
  return f'{digits} {units[power]}'


def duration(seconds: float) -> str:
  """Returns seconds as minutes and seconds, or hours.

  Example:
    >>> duration(75), duration(7265)
    ('1:15', '2:01:05')
  """
  minutes, seconds = divmod(round(seconds), 60)
  hours, minutes = divmod(minutes, 60)
  if hours:
    return f'{hours}:{minutes:02}:{seconds:02}'
  return f'{minutes}:{seconds:02}'
