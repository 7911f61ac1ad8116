"""One run on several processes, usually one a machine.

All processes run the same program on one mesh. The first one (index 0) decides,
reads, writes and speaks; the others hear what it decided, and are silent. None
goes on without the others: see `experiments.liveness`.

With one process, everything here is done at once and by itself.
"""

import contextlib
import json
import os
import secrets
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

from experiments import display
from experiments import errors
from experiments import liveness

#: Seconds in which all processes of a run have to come.
START = 300

#: Variables in which a launcher says how many processes it has started.
_LAUNCHERS = ('SLURM_STEP_NUM_TASKS', 'OMPI_COMM_WORLD_SIZE')

_watch: liveness.Watch | None = None


def start(coordinator: str | None, count: str | None, index: int | None) -> int:
  """Connects the processes of a run, before anything else of jax.

  Args:
    coordinator: ``host:port`` of process 0; None on clusters that jax knows.
    count: number of processes; ``'auto'`` asks the cluster; None is 1 unless a
      launcher (srun, mpirun) has started several.
    index: of this process.

  Returns:
    The number of processes.

  Raises:
    UserError: for flags that do not fit together, or if the processes do not
      find each other.
  """
  if count is None:
    several = coordinator is None and max(_launched()) > 1
    count = 'auto' if several else '1'
  if not count.isdecimal() and count != 'auto':
    raise errors.UserError(
      f"--num_processes is '{count}'; it must be a number, or auto"
    )
  if count == '1' and index is None and coordinator is None:
    return 1
  if count != 'auto':
    _check(coordinator, int(count), index)
  # It would take SIGTERM over, and nothing would end on it.
  jax.config.update('jax_enable_preemption_service', False)
  with _deadline(coordinator, count):
    try:
      jax.distributed.initialize(
        coordinator,
        None if count == 'auto' else int(count),
        index,
        initialization_timeout=2 * START,
        heartbeat_timeout_seconds=int(liveness.PATIENCE),
      )
    except (ValueError, RuntimeError) as error:
      raise errors.UserError(
        f'the processes cannot be connected: {str(error).splitlines()[0]}; '
        'give --coordinator=HOST:PORT, --num_processes and --process_id'
      ) from error
  return max(1, *_launched()) if count == 'auto' else int(count)


def _launched() -> list[int]:
  """Returns what launchers say of how many processes there are."""
  counts = [os.environ.get(name, '') for name in _LAUNCHERS]
  return [int(count) if count.isdecimal() else 1 for count in counts]


def _check(coordinator, count: int, index) -> None:
  if coordinator is None or ':' not in coordinator:
    raise errors.UserError(
      f'--num_processes={count} needs --coordinator=HOST:PORT of process 0, '
      f'and got {coordinator!r}'
    )
  if index is None or not 0 <= index < count:
    raise errors.UserError(
      f'--process_id is {index}; with --num_processes={count} it must be one '
      f'of 0 to {count - 1}, another in each process'
    )


@contextlib.contextmanager
def _deadline(coordinator, count):
  """Ends the process if those inside do not get on within `START` seconds.

  When jax gives up, it aborts with a stack trace of its own.
  """
  timer = threading.Timer(
    START,
    liveness.end_process,
    [
      f'not all of {count} processes have come to {coordinator} within '
      f'{START} s'
    ],
  )
  timer.daemon = True
  timer.start()
  try:
    yield
  finally:
    timer.cancel()


def watch() -> None:
  """Ends this process, from now on, when another one is lost.

  It also silences all but the first. Asks for the devices of jax, so their
  number must have been settled.
  """
  global _watch
  if jax.process_count() == 1 or _watch is not None:
    return
  if not is_first():
    display.silence()
  _watch = liveness.Watch(jax.process_index(), jax.process_count())
  accepting, offer = None, {}
  if is_first():
    token = secrets.randbits(60)
    port, accepting = _watch.listen(token)
    hosts = [socket.gethostname(), *_addresses()]
    offer = {'port': port, 'token': token, 'hosts': hosts}
  offer = _broadcast_json(offer)
  if accepting is None:
    _connect(**offer)
  else:
    accepting.join(START)
    if accepting.is_alive():
      raise errors.UserError(
        f'not all processes have reached process 0 at port {port} within '
        f'{START} s; its machine must accept connections from the others',
        code=1,
      )


def _addresses() -> list[str]:
  """Returns the addresses under which this machine may be reached."""
  try:
    found = socket.getaddrinfo(socket.gethostname(), None)
  except OSError:
    found = []
  return [*dict.fromkeys(entry[4][0] for entry in found), 'localhost']


def _connect(port, token, hosts) -> None:
  problems = []
  for host in hosts:
    try:
      return _watch.connect(host, port, token)
    except OSError as error:
      problems.append(f'{host}: {error}')
  raise errors.UserError(
    f'process 0 cannot be reached at port {port} ({"; ".join(problems)}); its '
    'machine must accept connections from the others',
    code=1,
  )


def is_first() -> bool:
  """Says whether this process writes and speaks."""
  return not jax.distributed.is_initialized() or jax.process_index() == 0


def decide(choose: Callable[[], Any]) -> Any:
  """Lets the first process choose, and returns in all what it chose.

  Args:
    choose: called in the first process only; returns JSON data. Its
      `UserError` is raised in all.
  """
  if jax.process_count() == 1:
    return choose()
  outcome = {}
  if is_first():
    try:
      outcome = {'value': choose()}
    except errors.UserError as error:
      outcome = {'error': str(error), 'code': error.code}
  outcome = _broadcast_json(outcome)
  if 'error' in outcome:
    raise errors.UserError(outcome['error'], outcome['code'], everywhere=True)
  return outcome['value']


def require_same(name: str, value: Any) -> None:
  """Raises a `UserError` unless all processes were given the same.

  Args:
    name: what it is.
    value: JSON data.
  """
  mine = json.dumps(value, sort_keys=True)
  first = decide(lambda: mine)
  if first != mine:
    raise errors.UserError(
      f'the {name} of this process differs from that of process 0; start all '
      'processes with the same flags, except for --process_id'
    )


def broadcast(array: np.ndarray) -> np.ndarray:
  """Returns the first process's array in all; all give the same shape."""
  if jax.process_count() == 1 or not array.size:
    return array
  # As bytes: it is sent as a sum with zeros, which would lose -0.0.
  sent = np.frombuffer(array.tobytes(), np.uint8)
  received = np.asarray(multihost_utils.broadcast_one_to_all(sent))
  return np.frombuffer(received.tobytes(), array.dtype).reshape(array.shape)


def _broadcast_json(value: Any) -> Any:
  text = np.frombuffer(json.dumps(value).encode(), np.uint8)
  size = int(broadcast(np.asarray(len(text))))
  padded = np.zeros(size, np.uint8)
  padded[: len(text)] = text[:size]
  return json.loads(broadcast(padded).tobytes())


def finish() -> None:
  """Waits for the other processes, at the end of a run."""
  if jax.distributed.is_initialized():
    if _watch is not None:
      _watch.leave()
    jax.distributed.shutdown()


def fail(reason: str, code: int, everywhere: bool = False) -> None:
  """Ends this process, if it is one of several, and tells the others why.

  Without it they would wait, and so would this one on its way out.

  Args:
    reason: for the others.
    code: exit code.
    everywhere: whether the others are ending, too, and know.
  """
  if not jax.distributed.is_initialized():
    return
  if _watch is not None and everywhere:
    _watch.leave()
  elif _watch is not None:
    _watch.stop(f'process {jax.process_index()} stopped: {reason}')
  sys.stdout.flush()
  if is_first():  # its end is the end of the others, who have a line to print
    time.sleep(0.5)
  os._exit(code)


def explain(error: Exception) -> None:
  """Ends this process, if it is one of several, after any other exception.

  An exchange with a process that died fails with an error that does not name
  it; the watch, which knows, is given the time to say so.
  """
  if not jax.distributed.is_initialized():
    return
  if _watch is not None and isinstance(error, jax.errors.JaxRuntimeError):
    time.sleep(1.5 * liveness.PATIENCE)
  traceback.print_exception(error)
  fail(f'{type(error).__name__}: {error}', 1)
