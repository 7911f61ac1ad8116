"""Who of several processes is alive: a line of TCP between them and the first.

A process that is killed takes its sockets with it, so the others know at once;
one whose machine or network is gone is silent, which takes `PATIENCE` seconds
to be sure of. Whoever learns of it says so in one line and ends the process it
runs in, since every exchange from there on would wait for ever.

The first process listens. It has a connection to each of the others, and passes
on what it learns.
"""

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable

#: Seconds of silence after which a process counts as lost.
PATIENCE = 30.0

_BYE, _PING, _STOP = 'bye', 'ping', 'stop'


class Link:
  """One end of a connection; `watch` reads it until it ends."""

  def __init__(self, connection: socket.socket, name: str, patience: float):
    self.name = name
    self._socket = connection
    self._patience = patience
    self._lines = connection.makefile('r')
    self._lock = threading.Lock()
    connection.settimeout(patience)

  def send(self, kind: str, text: str = '') -> None:
    """Sends a line; one that cannot be sent is noticed by who reads."""
    line = json.dumps([kind, text]) + '\n'
    with self._lock:
      try:
        self._socket.sendall(line.encode())
      except OSError:
        self._socket.close()

  def receive(self) -> tuple[str, str] | None:
    """Returns the next line, or None at the end of the connection."""
    line = self._lines.readline()
    if not line.endswith('\n'):
      return None
    kind, text = json.loads(line)
    return kind, text

  def watch(self, lost: Callable[['Link', str], None]) -> None:
    """Reads until the other end says goodbye, or calls ``lost`` with why."""
    while True:
      try:
        line = self.receive()
      except TimeoutError:
        return lost(self, f'{self.name} is silent for {self._patience:g} s')
      except (OSError, ValueError):
        line = None
      if line is None:
        return lost(self, f'{self.name} died')
      kind, text = line
      if kind == _BYE:
        return None
      if kind == _STOP:
        return lost(self, text)

  def ping(self) -> None:
    """Sends a sign of life now and then, for ever."""
    while True:
      time.sleep(self._patience / 5)
      self.send(_PING)


class Watch:
  """The connections of one process.

  Args:
    index: of this process; 0 listens.
    count: number of processes.
    end: what to do when another one is lost, with the reason; default: say so
      and end this process.
    patience: seconds of silence that are too many.
  """

  def __init__(
    self,
    index: int,
    count: int,
    end: Callable[[str], None] | None = None,
    patience: float = PATIENCE,
  ):
    self.index, self.count = index, count
    self._end = end or end_process
    self._patience = patience
    self._links: list[Link] = []
    self._ending = threading.Lock()

  def listen(self, token: int) -> tuple[int, threading.Thread]:
    """Opens a port and returns it, with the thread that accepts the others.

    Args:
      token: what the others have to show.
    """
    server = socket.create_server(('', 0), backlog=self.count)
    thread = threading.Thread(
      target=self._accept, args=(server, token), daemon=True
    )
    thread.start()
    return server.getsockname()[1], thread

  def connect(self, host: str, port: int, token: int) -> None:
    """Connects to the first process.

    Raises:
      OSError: if it cannot be reached.
    """
    connection = socket.create_connection((host, port), timeout=self._patience)
    link = Link(connection, 'process 0', self._patience)
    link.send(str(token), str(self.index))
    self._follow(link)

  def leave(self) -> None:
    """Says goodbye, so that what ends now is not taken for dead."""
    self._ending.acquire(blocking=False)
    for link in self._links:
      link.send(_BYE)

  def stop(self, reason: str) -> None:
    """Tells the others that this process ends, and why."""
    self._ending.acquire(blocking=False)
    for link in self._links:
      link.send(_STOP, reason)

  def _accept(self, server: socket.socket, token: int) -> None:
    expected = {str(index) for index in range(1, self.count)}
    with server:
      while expected:
        connection, _ = server.accept()
        link = Link(connection, '', self._patience)
        try:
          shown, index = link.receive() or ('', '')
        except (OSError, TypeError, ValueError):
          shown, index = '', ''
        if shown != str(token) or index not in expected:
          connection.close()  # a stranger
          continue
        expected.remove(index)
        link.name = f'process {index}'
        self._follow(link)

  def _follow(self, link: Link) -> None:
    self._links.append(link)
    for target, args in ((link.watch, (self._lost,)), (link.ping, ())):
      threading.Thread(target=target, args=args, daemon=True).start()

  def _lost(self, link: Link, reason: str) -> None:
    if not self._ending.acquire(blocking=False):
      return  # this process is ending already
    others = [other for other in self._links if other is not link]
    for other in others:
      other.send(_STOP, reason)
    if others:
      time.sleep(0.2)  # for the lines to arrive before jax's own news
    self._end(reason)


def end_process(reason: str) -> None:
  """Says why and ends this process, whatever its threads are doing."""
  text = f'error: {reason}; start all processes again, and the run continues\n'
  os.write(sys.stderr.fileno(), text.encode())
  os._exit(1)
