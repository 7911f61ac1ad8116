"""One of several processes that train, in turn, with each of some algorithms.

  python -m tests.experiments.several FOLDER COORDINATOR COUNT INDEX

The way of `experiments.train`, with several runs for one start of jax.
"""

import pathlib
import sys

from experiments import errors
from experiments import layouts
from experiments import loop
from experiments import processes
from tests.experiments import small

DEVICES_EACH = 2

#: Algorithm -> overrides of `small.fields`.
ALGORITHMS = {
  'dsgd': {'algorithm.name': 'dsgd', 'topology.name': 'ring'},
  'local_sgd': {'algorithm.name': 'local_sgd', 'algorithm.period': 7},
  'push_sum': {
    'algorithm.name': 'sgp',
    'topology.name': 'random_out_degree',
  },
}


def fields(algorithm: str, **overrides):
  """Returns a resolved config of 8 workers and 20 steps."""
  section = {'algorithm': {}, 'topology': {'name': 'ring'}}
  given = {
    'workers': 8,
    'steps': 20,
    'log_every': 5,
    'eval_every': 10,
    'checkpoint_every': 10,
    'workload.hidden': 8,
    'batch_size': 4,
    **ALGORITHMS[algorithm],
    **overrides,
  }
  return small.resolved(small.emptied(section), given)


def main(folder: str, coordinator: str, count: str, index: str) -> None:
  processes.start(coordinator, count, int(index))
  devices = DEVICES_EACH * int(count)
  runs = {
    name: fields(name, layout='mesh', devices=devices) for name in ALGORITHMS
  }
  layouts.prepare(runs['dsgd'], int(count))
  processes.watch()
  for name, config in runs.items():
    loop.train(config, str(pathlib.Path(folder) / name))
  processes.finish()


if __name__ == '__main__':
  try:
    main(*sys.argv[1:])
  except errors.UserError as error:
    print(f'error: {error}', file=sys.stderr)
    processes.fail(str(error), error.code, error.everywhere)
    raise
