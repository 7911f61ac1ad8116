"""What an algorithm sends: the collectives of its program, added up."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class Exchange:
  """One collective of an algorithm.

  Attributes:
    collective: name of the primitive, such as ``'ppermute'`` or ``'psum'``.
    dtype: of what crosses the wire.
    size: bytes of one message, which is the operand.
    workers: number of workers.
    runs: [steps] how often it runs at each step.
    pairs: (sender, receiver) of each message of a permutation; nobody sends to
      itself. Empty for other collectives.
    groups: the workers among whom each instance of another collective runs, all
      of them if it is one for all. Empty for permutations.
  """

  collective: str
  dtype: np.dtype
  size: int
  workers: int
  runs: np.ndarray
  pairs: tuple[tuple[int, int], ...] = ()
  groups: tuple[tuple[int, ...], ...] = ()

  @property
  def messages(self) -> np.ndarray:
    """[workers] messages that each worker sends when it runs once."""
    members = [worker for group in self.groups for worker in group]
    senders = [sender for sender, _ in self.pairs] + members
    return np.bincount(np.array(senders, int), minlength=self.workers)

  @property
  def bytes(self) -> np.ndarray:
    """[workers] bytes that each worker sends when it runs once."""
    return self.size * self.messages

  @property
  def period(self) -> int | None:
    """Steps between its first two runs; None if it does not run twice."""
    steps = np.flatnonzero(self.runs)
    return int(steps[1] - steps[0]) if len(steps) > 1 else None

  def by_level(self, size: int) -> tuple['Exchange', 'Exchange']:
    """The parts within and between machines of ``size`` workers."""

    def stays(members):
      return len({worker // size for worker in members}) == 1

    stay = all(map(stays, self.groups))
    within = dataclasses.replace(
      self,
      pairs=tuple(pair for pair in self.pairs if stays(pair)),
      groups=self.groups if stay else (),
    )
    between = dataclasses.replace(
      self,
      pairs=tuple(pair for pair in self.pairs if not stays(pair)),
      groups=() if stay else self.groups,
    )
    return within, between


@dataclasses.dataclass(frozen=True, eq=False)
class Traffic:
  """All that an algorithm sends over a number of steps.

  A permutation counts its operand once for each worker that sends to another,
  an all-reduce, a reduce-scatter or an all-gather its operand once for each
  worker: what the algorithm hands to the network, whatever the network makes of
  it. (A ring all-reduce moves 2 (n - 1) / n times as much.)

  Attributes:
    exchanges: the collectives in the order of the program.
    workers: number of workers.
    steps: the horizon.
  """

  exchanges: tuple[Exchange, ...]
  workers: int
  steps: int

  @property
  def bytes(self) -> np.ndarray:
    """[steps] bytes sent at each step by a worker, the mean over workers."""
    return self._per_step('bytes')

  @property
  def messages(self) -> np.ndarray:
    """[steps] messages sent at each step by a worker, the mean."""
    return self._per_step('messages')

  @property
  def bytes_per_step(self) -> float:
    """Bytes sent by a worker in a step, the mean over the horizon."""
    return float(np.mean(self.bytes))

  @property
  def messages_per_step(self) -> float:
    """Messages sent by a worker in a step, the mean over the horizon."""
    return float(np.mean(self.messages))

  @property
  def bytes_by_worker(self) -> np.ndarray:
    """[workers] bytes sent in a step, the mean over the horizon."""
    total = np.zeros(self.workers)
    for exchange in self.exchanges:
      total += exchange.bytes * np.mean(exchange.runs)
    return total

  def by_level(self, workers_per_machine: int) -> tuple['Traffic', 'Traffic']:
    """Splits it into what stays within machines and what goes between them.

    A message of a permutation is between machines if sender and receiver are in
    different ones; another collective is if any of its groups of workers spans
    several. The bytes of both parts add up.

    Args:
      workers_per_machine: how many consecutive workers make a machine.

    Returns:
      ``(within, between)``, the collectives of each.

    Raises:
      ValueError: when the workers do not divide into machines.

    Example:
      >>> import jax.numpy as jnp
      >>> ring = decopt.dsgd(optax.sgd(0.1), decopt.ring(8))
      >>> sent = decopt.traffic(ring, jnp.zeros(10_000), workers=8)
      >>> within, between = sent.by_level(4)
      >>> within.bytes_per_step, between.bytes_per_step
      (60000.0, 20000.0)
    """
    if workers_per_machine < 1 or self.workers % workers_per_machine:
      raise ValueError(
        f'by_level got workers_per_machine={workers_per_machine}, but there '
        f'are {self.workers} workers, which do not divide into such machines. '
        f'Use a divisor of {self.workers}.'
      )
    parts = [e.by_level(workers_per_machine) for e in self.exchanges]
    return tuple(
      dataclasses.replace(
        self,
        exchanges=tuple(
          pair[level] for pair in parts if pair[level].messages.any()
        ),
      )
      for level in (0, 1)
    )

  def _per_step(self, what) -> np.ndarray:
    total = np.zeros(self.steps)
    for exchange in self.exchanges:
      total += np.mean(getattr(exchange, what)) * exchange.runs
    return total

  def __str__(self) -> str:
    lines = [
      f'{self.bytes_per_step:,.0f} bytes in {self.messages_per_step:.3g} '
      'messages a step from each worker'
    ]
    for e in self.exchanges:
      lines.append(
        f'  {e.collective}: {np.mean(e.bytes):,.0f} bytes of {e.dtype}, '
        f'{self._when(e)}'
      )
    return '\n'.join(lines)

  def _when(self, exchange) -> str:
    if exchange.period is None:
      times = 'once' if exchange.runs.any() else 'never'
      return f'{times} in {self.steps} steps'
    if exchange.period == 1:
      return 'every step'
    return f'every {exchange.period} steps'
