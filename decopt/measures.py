"""How fast a graph agrees, and over what distance: measured on its weights.

All functions take a `decopt.Topology`, which has the ways in to them:
`Topology.report` and `Topology.effective_neighbours`.
"""

from collections.abc import Callable

import numpy as np

_NEVER = 1e-11  # a spectral gap that is a rounding error
_EXACT = 1e-12


def rounds_to(topology, tolerance: float) -> int | None:
  """Rounds after which workers are close; see `Report.rounds_to`.

  The distance after rounds with the product `P` is the largest singular value
  of `(I - J) diag(P 1)^-1 P`, with `J` of entries 1 / workers. It is found by
  bisection, and may rise before it falls, but not where `P` preserves the mean.
  """

  def is_close(product):
    held = product.sum(axis=1, keepdims=True)  # 1, or the weights of push-sum
    if held.min() <= 0:
      return False
    values = product / held
    return _norm_is_at_most(values - values.mean(axis=0), tolerance)

  product = np.eye(topology.workers)
  if is_close(product):
    return 0
  drained = not (topology.is_row_stochastic() or topology.is_connected())
  if drained or topology.spectral_gap() <= _NEVER:
    return None
  if topology.period == 1 and topology.is_symmetric():
    factor = max(1 - topology.spectral_gap(), tolerance)  # of each round
    return int(np.ceil(np.log(tolerance) / np.log(factor) - 1e-9))
  found = _last_power(_product(topology.weights), is_close)
  if found is None:
    return None
  periods, product = found
  rounds = periods * topology.period
  for weights in topology.weights:
    product = weights @ product
    rounds += 1
    if is_close(product):
      break
  return rounds


def diameter(topology) -> int | None:
  """Rounds that a message may need; see `Report.diameter`."""
  if topology.workers == 1:
    return 0
  if not topology.is_connected():
    return None
  hears = topology.links.any(axis=0) | np.eye(topology.workers, dtype=bool)

  def multiply(a, b):
    return np.minimum(a @ b, 1)

  last, _ = _last_power(hears.astype(np.float32), np.all, multiply)
  return last + 1


def exact_after(topology) -> int | None:
  """Rounds after which all hold the mean; see `Report.exact_after`."""
  product = np.eye(topology.workers)
  for rounds in range(topology.period + 1):
    if np.abs(product - 1 / topology.workers).max() <= _EXACT:
      return rounds
    product = topology.weights[rounds % topology.period] @ product
  return None


def effective_neighbours(topology, decay: float) -> float:
  """How many workers average; see `Topology.effective_neighbours`."""
  if not 0 <= decay < 1:
    raise ValueError(
      f'effective_neighbours needs a decay from 0 to less than 1, but got '
      f'{decay}.'
    )
  covariance = np.zeros((topology.workers, topology.workers))
  for weights in topology.weights:
    covariance = _walked(covariance, weights, decay)
  # Sums over all periods before, by doubling: A C A' + C, then A A for A.
  step = decay ** (topology.period / 2) * _product(topology.weights)
  while (
    earlier := step @ covariance @ step.T
  ).max() > 1e-17 * covariance.max():
    covariance = covariance + earlier
    step = step @ step
  held = _held(topology)
  variances = []
  for weights in topology.weights:
    covariance = _walked(covariance, weights, decay)
    held = weights @ held if topology.is_column_stochastic() else held
    variances.append(_ratio(covariance.diagonal(), held**2).mean())
  return float(1 / ((1 - decay) * np.mean(variances)))


def _walked(covariance, weights, decay: float) -> np.ndarray:
  """The covariance of W (sqrt(decay) z + new noise of variance 1)."""
  walked = decay * covariance
  walked[np.diag_indices_from(walked)] += 1
  return weights @ walked @ weights.T


def _held(topology) -> np.ndarray:
  """The weights of push-sum after many periods; 1 if nothing is to de-bias."""
  if topology.is_row_stochastic():
    return np.ones(topology.workers)
  product = _product(topology.weights)
  for _ in range(40):
    product = product @ product
    product /= product.sum(axis=0)
    if (np.ptp(product, axis=1) <= 1e-14 * product.max(axis=1)).all():
      break  # whoever starts with it, a worker ends with the same share
  return product.sum(axis=1)


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
  never = np.full(numerator.shape, np.inf)  # the weight of a worker died out
  return np.divide(numerator, denominator, out=never, where=denominator > 0)


def _product(rounds: np.ndarray) -> np.ndarray:
  product = rounds[0]
  for weights in rounds[1:]:
    product = weights @ product
  return product


def _last_power(
  matrix: np.ndarray,
  is_done: Callable[[np.ndarray], bool],
  multiply: Callable[[np.ndarray, np.ndarray], np.ndarray] = np.matmul,
) -> tuple[int, np.ndarray] | None:
  """The last power that is not done, with its exponent, for large exponents.

  Powers that are done must stay so. Squares are taken until one is done, and
  from the largest on multiplied wherever the result is not done yet. None if
  after 60 squares none is.
  """
  squares = []
  while not is_done(matrix):
    squares.append(matrix)
    matrix = multiply(matrix, matrix)
    if len(squares) > 60:
      return None
  exponent, power = 0, np.eye(len(matrix), dtype=matrix.dtype)
  for k, square in reversed(list(enumerate(squares))):
    larger = multiply(square, power)
    if not is_done(larger):
      exponent, power = exponent + 2**k, larger
  return exponent, power


def _norm_is_at_most(matrix: np.ndarray, bound: float) -> bool:
  """Of the largest singular value: if bound**2 I - A' A is positive."""
  root_of_squares = np.linalg.norm(matrix)
  if root_of_squares <= bound:
    return True
  if root_of_squares > bound * len(matrix) ** 0.5:
    return False
  left = -(matrix.T @ matrix)
  left[np.diag_indices_from(left)] += bound**2 * (1 + 1e-12)
  try:
    np.linalg.cholesky(left)  # a tenth of the time of the singular values
  except np.linalg.LinAlgError:
    return False
  return True
