"""How far a run is: steps, seconds, and the losses since the last report."""

import time
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from decopt import hosts


class Progress:
  """Counts steps, sums losses, and times training.

  Losses arrive while the device still works; `settle` waits for them. Sums are
  kept on the host in float64 and saved with a checkpoint, so a run that was
  interrupted between two reports adds up the same numbers in the same order.
  The clock runs from the moment that the program is compiled, and stands still
  between `settle` and `resume`: during evaluation, writing and saving.

  Args:
    workers: number of workers.
    saved: what `saved` returned, of a run that continues.
  """

  def __init__(self, workers: int, saved: Mapping[str, Any] | None = None):
    saved = saved or {
      'step': 0,
      'seconds': 0.0,
      'loss_sums': [0.0] * workers,
      'losses': 0,
      'seconds_at_report': 0.0,
    }
    self.step = saved['step']
    self._seconds = saved['seconds']
    self._loss_sums = np.asarray(saved['loss_sums'], np.float64)
    self._losses = saved['losses']
    self._seconds_at_report = saved['seconds_at_report']
    self._pending = []
    self._unsummed = np.zeros((workers, 0))
    self._started = None

  def dispatched(self, losses: jax.Array, steps: int) -> None:
    """Notes steps that were handed to the device, with losses to come.

    Args:
      losses: [workers, steps].
      steps: number of steps.
    """
    if self._started is None:  # the first call returns once it is compiled
      self._started = time.perf_counter()
    self.step += steps
    self._pending.append(losses)

  def settle(self, state: Any) -> None:
    """Waits for the device, and stops the clock."""
    jax.block_until_ready(state)
    self._seconds += time.perf_counter() - self._started
    arrived = [np.float64(hosts.fetch(losses)) for losses in self._pending]
    self._unsummed = np.concatenate(arrived, axis=1)
    self._pending = []
    self._loss_sums += self._unsummed.sum(axis=1)
    self._losses += self._unsummed.shape[1]

  def resume(self) -> None:
    """Starts the clock again."""
    self._started = time.perf_counter()

  def not_finite(self) -> str | None:
    """Names the first loss that is NaN or infinite, if there is one."""
    bad = np.argwhere(~np.isfinite(self._unsummed.T))  # by step, then worker
    if not bad.size:
      return None
    position, worker = bad[0]
    value = self._unsummed[worker, position]
    step = self.step - self._unsummed.shape[1] + position + 1
    name = 'NaN' if np.isnan(value) else 'infinite'
    return f'step {step}: the loss of worker {worker} is {name}'

  def report(self) -> dict[str, Any]:
    """Returns the row of metrics since the last report, and starts a new one.

    All of `experiments.run_directory.METRICS` that training itself knows.
    """
    losses = self._loss_sums / self._losses
    seconds = self._seconds - self._seconds_at_report
    row = {
      'step': self.step,
      'loss': float(losses.mean()),
      'loss_worst_worker': float(losses.max()),
      'gradient_evaluations': self.step * len(losses),
      'seconds': self._seconds,
      'steps_per_second': self._losses / max(seconds, 1e-9),
    }
    self._loss_sums = np.zeros_like(self._loss_sums)
    self._losses = 0
    self._seconds_at_report = self._seconds
    return row

  def saved(self) -> dict[str, Any]:
    """Returns everything as JSON data, for a checkpoint."""
    return {
      'step': self.step,
      'seconds': self._seconds,
      'loss_sums': self._loss_sums.tolist(),
      'losses': self._losses,
      'seconds_at_report': self._seconds_at_report,
    }
