"""Mistakes that one line explains.

Everything a user can put right - a mistyped field, a directory in use, a full
disk, a loss that became NaN - is a `UserError`: the binaries print its message
as one line and exit. Everything else is a bug and keeps its traceback.
"""

import difflib
from collections.abc import Iterable


class UserError(Exception):
  """Something the user can put right; printed as one line, no traceback.

  Attributes:
    code: exit code of the process: 2 for a mistake in flags or config, 1 for a
      run that had to stop.
    everywhere: whether all processes of a run raise it, so that none has to be
      told.
  """

  def __init__(self, message: str, code: int = 2, everywhere: bool = False):
    super().__init__(' '.join(message.split()))
    self.code = code
    self.everywhere = everywhere


def did_you_mean(name: str, known: Iterable[str]) -> str:
  """Returns ``; did you mean 'dsgd'?`` for the closest name, or nothing.

  Example:
    >>> did_you_mean('dsdg', ['dsgd', 'diffusion'])
    "; did you mean 'dsgd'?"
    >>> did_you_mean('cosine', ['constant', 'cosine_decay_schedule'])
    "; did you mean 'cosine_decay_schedule'?"
    >>> did_you_mean('xyz', ['dsgd', 'diffusion'])
    ''
  """
  name, known = str(name), sorted(known)
  longer = [option for option in known if name and option.startswith(name)]
  close = difflib.get_close_matches(name, known, n=1) or longer
  return f"; did you mean '{close[0]}'?" if close else ''


def unknown(kind: str, name: str, known: Iterable[str]) -> UserError:
  """Returns the error for a name that a table of choices does not have."""
  known = sorted(known)
  hint = did_you_mean(name, known)
  if len(known) <= 12:
    choices = f'known: {", ".join(known)}'
  else:
    choices = f'--list shows all {len(known)}'
  return UserError(f"there is no {kind} '{name}'{hint or ';'} {choices}")
