"""Trains one model on many workers.

  python -m experiments.train --config=configs/digits.py --workdir=runs/digits

Any field of the config can be overridden, ``--config.workers=16``; ``--list``
shows what can be named. The same command again continues a run that was
interrupted, and shows the result of one that is complete.
"""

import sys
from collections.abc import Sequence

from absl import app
from absl import flags
from absl import logging
from ml_collections import config_flags

from experiments import command_line
from experiments import config
from experiments import errors
from experiments import layouts
from experiments import listing
from experiments import loop
from experiments import processes

_CONFIG = config_flags.DEFINE_config_file(
  'config',
  None,
  'File with get_config(); --config.field=value overrides a field.',
  lock_config=False,  # experiments.config locks what is not open
  accept_new_attributes=True,
)
_WORKDIR = flags.DEFINE_string(
  'workdir', None, 'Directory of the run; created if it does not exist.'
)
_RESUME = flags.DEFINE_bool(
  'resume',
  True,
  'Continue the run in --workdir if it is of this same config, and refuse if '
  'it is of another one. With --noresume, any run in --workdir is refused; '
  'nothing is ever deleted.',
)
_COORDINATOR = flags.DEFINE_string(
  'coordinator',
  None,
  'HOST:PORT of process 0, in a run on several processes.',
)
_NUM_PROCESSES = flags.DEFINE_string(
  'num_processes',
  None,
  'Number of processes, or auto to ask the cluster (SLURM, Open MPI, TPU). '
  'Default: auto under srun and Open MPI 4, 1 elsewhere.',
)
_PROCESS_ID = flags.DEFINE_integer(
  'process_id', None, 'Index of this process, from 0.'
)
_LIST = flags.DEFINE_bool(
  'list', False, 'Show what a config can name, a line each, and exit.'
)


def main(argv: Sequence[str]) -> None:
  logging.set_verbosity(logging.WARNING)  # not which accelerators are absent
  if argv[1:]:
    raise errors.UserError(
      f"unexpected argument '{argv[1]}'; overrides are --config.field=value"
    )
  if _LIST.value:
    print(listing.listing())
    return
  for flag, example in (('config', 'configs/digits.py'), ('workdir', 'DIR')):
    if flags.FLAGS[flag].value is None:
      raise errors.UserError(
        f'--{flag} is missing, for example --{flag}={example}'
      )
  overridden = flags.FLAGS['config'].override_values
  fields = config.resolve(_CONFIG.value, overridden)
  count = processes.start(
    _COORDINATOR.value, _NUM_PROCESSES.value, _PROCESS_ID.value
  )
  layouts.prepare(fields, count)
  processes.watch()
  loop.train(fields, _WORKDIR.value, resume=_RESUME.value)
  processes.finish()


def run() -> None:
  """Runs the binary: a `UserError` is one line, anything else a traceback."""
  try:
    app.run(main, flags_parser=command_line.parse)
  except errors.UserError as error:
    print(f'error: {error}', file=sys.stderr)
    processes.fail(str(error), error.code, error.everywhere)
    sys.exit(error.code)
  except KeyboardInterrupt:
    print('interrupted; the same command continues', file=sys.stderr)
    processes.fail('it was interrupted', 130)
    sys.exit(130)
  except Exception as error:
    processes.explain(error)
    raise


if __name__ == '__main__':
  run()
