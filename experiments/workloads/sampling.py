"""In which order a worker goes through its examples.

Each worker walks through its own part in epochs, each epoch a fresh shuffle, so
that every example is seen once before any is seen again. The order is a pure
function of seed, worker and step: a run that resumes at step 5,000, or takes
its steps by the hundred, sees the same batches as one that never stopped.
"""

from collections.abc import Sequence

import numpy as np

from experiments.workloads import base

# Small epochs are drawn several at once, because starting a generator costs as
# much as shuffling a thousand examples.
_DRAWN_AT_ONCE = 4096
_PURPOSE = 2  # keeps these draws apart from others that use the same seed


class BatchOrder:
  """The endless stream of batches of each worker.

  A batch may span two epochs, and more if the part is smaller than the batch:
  an example then occurs in it several times.

  Example:
    >>> order = BatchOrder(
    ...   [np.arange(4), np.arange(4, 9)], batch_size=2, seed=0
    ... )
    >>> epochs = order.indices(first_step=0, steps=4)
    >>> epochs.shape
    (2, 4, 2)
    >>> np.sort(epochs[0].reshape(2, 4))
    array([[0, 1, 2, 3],
           [0, 1, 2, 3]], dtype=int32)
    >>> np.array_equal(order.indices(first_step=3, steps=1), epochs[:, 3:])
    True
  """

  def __init__(self, parts: Sequence[np.ndarray], batch_size: int, seed: int):
    """Takes the examples of each worker, see `partition`.

    Args:
      parts: for each worker, the numbers of its examples; none is empty.
      batch_size: examples of one worker in one step.
      seed: decides, with worker and step, which examples these are.

    Raises:
      ValueError: if a part is empty or a number is out of range.
    """
    base.check_count('batch_size', batch_size)
    base.check_count('seed', seed, at_least=0)
    self._parts = [np.asarray(part, np.int32) for part in parts]
    for worker, part in enumerate(self._parts):
      if not part.size:
        raise ValueError(
          f'worker {worker} has no examples to draw batches from; use another '
          'partition or fewer workers'
        )
    self._batch_size = batch_size
    self._seed = seed
    self._blocks = [{} for _ in parts]

  def indices(self, first_step: int, steps: int) -> np.ndarray:
    """Which examples are in the batches of some consecutive steps.

    Args:
      first_step: the first of these steps; counts from 0.
      steps: how many.

    Returns:
      `[workers, steps, batch_size]` int32.

    Raises:
      ValueError: if `first_step` is negative or `steps` is not positive.
    """
    base.check_count('first_step', first_step, at_least=0)
    base.check_count('steps', steps)
    start = first_step * self._batch_size
    stop = start + steps * self._batch_size
    workers = range(len(self._parts))
    streams = [self._stream(worker, start, stop) for worker in workers]
    return np.stack(streams).reshape(-1, steps, self._batch_size)

  def _stream(self, worker, start, stop):
    """Positions `start` to `stop` of a worker's stream of examples."""
    size = self._epochs_in_block(worker) * len(self._parts[worker])
    first, last = start // size, (stop - 1) // size
    kept = self._blocks[worker]
    # Only what this call needs stays in memory; what is kept changes the time a
    # call takes and never its result.
    needed = {
      block: kept[block] if block in kept else self._draw(worker, block)
      for block in range(first, last + 1)
    }
    self._blocks[worker] = needed
    pieces = [
      examples[max(start - block * size, 0) : stop - block * size]
      for block, examples in needed.items()
    ]
    return np.concatenate(pieces)

  def _draw(self, worker, block):
    """Some consecutive epochs of a worker, one after the other."""
    rng = np.random.default_rng([self._seed, worker, block, _PURPOSE])
    epochs = np.tile(self._parts[worker], (self._epochs_in_block(worker), 1))
    return rng.permuted(epochs, axis=1).ravel()

  def _epochs_in_block(self, worker):
    return max(1, _DRAWN_AT_ONCE // len(self._parts[worker]))
