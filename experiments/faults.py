"""The faults of links and workers that a config can name.

``config.faults`` is ``{name: 'link_drops', probability: 0.1, seed: 0}``; what
happens when depends on the arguments and the step alone, so that a run that
was interrupted goes on as it would have. A new kind is one row of `FAULTS`.
"""

from collections.abc import Mapping
from typing import Any

import decopt
from experiments import errors
from experiments import sections


def none() -> None:
  """Returns no faults: all messages arrive, all workers work."""


#: name -> (function, one line for ``--list``)
FAULTS = {
  'none': (none, 'all messages arrive, all workers work'),
  'link_drops': (
    decopt.link_drops,
    'each message is lost with a probability; probability, seed',
  ),
  'link_bursts': (
    decopt.link_bursts,
    'links fail for a while (Gilbert-Elliott); fail, recover, seed',
  ),
  'inactive_workers': (
    decopt.inactive_workers,
    'workers leave and come back; leave, rejoin, seed',
  ),
}


def build(section: Mapping[str, Any]):
  """Returns the faults that ``config.faults`` describes, or None.

  Raises:
    UserError: for an unknown name or argument, or one that is out of range.
  """
  name = section['name']
  if name not in FAULTS:
    raise errors.unknown('kind of faults', name, FAULTS)
  given = sections.arguments(section)
  return sections.call('faults', name, FAULTS[name][0], given)


def stops_workers(section: Mapping[str, Any]) -> bool:
  """Says whether these faults keep workers from working, not only messages."""
  return section['name'] == 'inactive_workers'
