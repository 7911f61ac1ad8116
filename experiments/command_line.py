"""Flags of the binaries, with one line for whatever is wrong with them."""

import pathlib
import re
import traceback
from collections.abc import Sequence

from absl import flags

from experiments import config
from experiments import errors


def parse(argv: Sequence[str]) -> list[str]:
  """Parses flags; what is wrong with them becomes a `UserError`."""
  _require_file(argv)
  config.check_overrides(argv[1:])
  try:
    return flags.FLAGS(argv)
  except flags.Error as error:
    # A TypeError or ValueError of the file comes as the text of a traceback.
    place = re.findall(r'File "(.*)", line (\d+), in get_config', str(error))
    text = str(error).strip().split('\n')[-1] if place else str(error)
    where = '{}:{}: '.format(*place[-1]) if place else ''
    raise errors.UserError(f'{where}{text}; --help shows the flags') from error
  except (AttributeError, KeyError) as error:
    # Fields that the config does not have, and files without get_config, are
    # what ml_collections complains of; anything else is a bug in the file.
    frames = traceback.extract_tb(error.__traceback__)
    if 'ml_collections' not in frames[-1].filename:
      raise
    raise _explained(error, frames) from error


def _explained(error: Exception, frames) -> errors.UserError:
  text = str(error.args[0])
  place = [frame for frame in frames if frame.name == 'get_config']
  field = re.match(r'\W*Key "(\w+)" does not exist', text)
  if "'get_config'" in text:
    text = 'the config file has no function get_config()'
  if field:
    known = config.flatten(config.default().to_dict())
    names = {part for path in known for part in path.split('.')}
    hint = errors.did_you_mean(field[1], names)
    text = f"the config has no field '{field[1]}'{hint}"
  where = f'{place[-1].filename}:{place[-1].lineno}: ' if place else ''
  return errors.UserError(where + text)


def _require_file(argv: Sequence[str]) -> None:
  """Checks that --config is a file, which reading it would say much later."""
  for argument, following in zip(argv, [*argv[1:], ''], strict=True):
    name, equals, value = argument.partition('=')
    if name in ('-config', '--config'):
      path = pathlib.Path((value if equals else following).split(':')[0])
      if not path.is_file():
        others = [str(other) for other in path.parent.glob('*.py')]
        hint = errors.did_you_mean(str(path), others)
        raise errors.UserError(f"there is no config file '{path}'{hint}")
