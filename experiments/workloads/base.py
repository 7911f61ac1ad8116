"""What a workload is: data for all workers, and three functions of one.

A workload knows nothing of workers, topologies or optimizers. It holds arrays
of examples and says how *one* model starts, what one batch costs it, and how
well it does; `experiments.step` maps these over the workers, and `partition`
and `sampling` decide which examples each worker sees, and when.
"""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import jax
import numpy as np

from experiments import errors

Tree = Any  # nested plain dicts of arrays
Batch = dict[str, jax.Array]


@dataclasses.dataclass(frozen=True, eq=False)
class Workload:
  """Examples, and a model that learns from them.

  Attributes:
    name: what error messages and run directories call it.
    train: training examples by field, each array `[examples, ...]`.
    test: held-out examples by field, the same fields.
    labels: int array `[examples]`, the class (or file) of each training
      example; partitions use it, models do not.
    init: `init(key) -> (params, model_state)`; two plain nested dicts that
      depend on the key alone. `model_state` is `{}` unless the model has batch
      statistics, then it is `{'batch_stats': ...}`.
    loss: `loss(params, model_state, batch, key) -> (loss, model_state)`; the
      mean loss of one worker's batch in training mode. `key` is for models
      that draw noise.
    evaluate: `evaluate(params, model_state, batch) -> metrics`; the mean
      `loss` and `accuracy` of a batch in inference mode, where batch statistics
      are used as they are.
  """

  name: str
  train: dict[str, np.ndarray]
  test: dict[str, np.ndarray]
  labels: np.ndarray
  init: Callable[[jax.Array], tuple[Tree, Tree]]
  loss: Callable[[Tree, Tree, Batch, jax.Array], tuple[jax.Array, Tree]]
  evaluate: Callable[[Tree, Tree, Batch], dict[str, jax.Array]]

  def __post_init__(self):
    if self.train.keys() != self.test.keys():
      raise ValueError(
        f'workload {self.name!r} trains on the fields {sorted(self.train)} but '
        f'is tested on {sorted(self.test)}; give both the same fields'
      )
    for field, array in self.train.items():
      if len(array) != len(self.labels):
        raise ValueError(
          f'workload {self.name!r} has {len(self.labels)} labels but '
          f'{len(array)} training examples in {field!r}; give one label each'
        )

  @property
  def examples(self) -> int:
    """Number of training examples."""
    return len(self.labels)


def check_name(kind: str, name: str, known: Iterable[str]) -> None:
  """Refuses a name that is not known, and suggests the one that was meant.

  Args:
    kind: what the name should be a name of, in the singular.
    name: the name to check.
    known: the names there are.

  Raises:
    ValueError: if `name` is not known.

  Example:
    >>> check_name('workload', 'digit', ['digits', 'text'])
    Traceback (most recent call last):
      ...
    ValueError: there is no workload 'digit'; did you mean 'digits'? known: \
digits, text
  """
  known = sorted(known)
  if name not in known:
    hint = errors.did_you_mean(name, known) or ';'
    raise ValueError(
      f'there is no {kind} {name!r}{hint} known: {", ".join(known)}'
    )


def check_count(field: str, value: int, at_least: int = 1) -> None:
  """Refuses a value that is not a whole number of at least `at_least`.

  Args:
    field: the argument, as the user writes it.
    value: what was given for it.
    at_least: the smallest value that makes sense.

  Raises:
    TypeError: if `value` is not an integer.
    ValueError: if `value` is below `at_least`.
  """
  if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
    raise TypeError(
      f'{field} is {value!r}, of type {type(value).__name__}; it must be a '
      'whole number'
    )
  if value < at_least:
    raise ValueError(f'{field} is {value}; it must be at least {at_least}')
