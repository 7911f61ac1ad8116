"""How fast a graph agrees, and over what distance: measured on its weights.

All functions take a `decopt.Topology`, which has the ways in to them:
`Topology.report` and `Topology.effective_neighbours`.
"""

from collections.abc import Callable

import numpy as np

from decopt import arguments
from decopt import matrices

_EXACT = 1e-12  # what is left of a distance by rounding alone
_NEARLY_EXACT = 1e-6  # from here only exact averaging gets there at once


def agree(topology) -> bool:
  """Whether repeated rounds bring workers together, wherever they start.

  It is decided on the links, without rounding: of the product of a period, a
  high power must have one sender whom all hear, or, if rows do not sum to 1, so
  that values are de-biased, must let all hear all. Otherwise some eigenvalue
  besides the first has a modulus of 1, or the weight of a worker dies out.
  """
  itself = np.arange(topology.workers)
  if topology.weights[:, itself, itself].all() and topology.is_connected():
    return True
  hears = np.eye(topology.workers, dtype=np.float32)
  for weights in topology.weights:
    hears = _reached((weights > 0).astype(np.float32), hears)
  # By Wielandt's bound (n - 1)**2 + 1 periods show what more of them do.
  for _ in range(2 * topology.workers.bit_length()):
    hears = _reached(hears, hears)
  if topology.is_row_stochastic():
    return bool(hears.all(axis=0).any())
  return bool(hears.all())


def spectral_gap(topology) -> float:
  """How much disagreement dies in a round; see `Topology.spectral_gap`."""
  rounds = topology.weights
  if topology.is_doubly_stochastic():
    deviation = _deviation(rounds, slice(None))
    rho = np.sqrt(np.linalg.eigvalsh(deviation.T @ deviation).max())
  else:
    if not topology.is_row_stochastic():
      rounds = rounds[::-1].swapaxes(1, 2)  # the same eigenvalues
    rho = _second_eigenvalue(rounds)
  gap = 1 - min(float(rho), 1.0) ** (1 / topology.period)
  return gap if gap > 1e-12 else 0.0


def rounds_to(topology, tolerance: float = 1e-3) -> int | None:
  """Rounds after which workers are close; see `Topology.rounds_to`.

  The distance after rounds with the product `P` is the largest singular value
  of `(I - J) diag(P 1)^-1 P`, with `J` of entries 1 / workers. It is found by
  bisection, and may rise before it falls, but not where `P` preserves the mean.
  """
  tolerance = arguments.number('rounds_to', tolerance=tolerance)
  if not 0 < tolerance < 1:
    raise ValueError(
      f'rounds_to needs a tolerance between 0 and 1, but got {tolerance}.'
    )

  def is_close(product):
    held = product.sum(axis=1, keepdims=True)  # 1, or the weights of push-sum
    if held.min() <= 0:
      return False
    values = product / held
    return _norm_is_at_most(values - values.mean(axis=0), tolerance)

  product = np.eye(topology.workers)
  if is_close(product):
    return 0
  if not agree(topology):
    return None
  if topology.period == 1 and (
    topology.is_symmetric() or _is_normal(topology.weights[0])
  ):
    factor = max(1 - topology.spectral_gap(), tolerance)  # of each round
    if factor == 1:  # smaller than rounding tells
      return None
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
  last, _ = _last_power(hears.astype(np.float32), np.all, _reached)
  return last + 1


def exact_after(topology) -> int | None:
  """Rounds after which all hold the mean; see `Report.exact_after`.

  To get there, disagreement must die out entirely, which a power of its matrix
  tells: n periods are enough for n workers if any number is. The round is that
  in which the distance falls to rounding at once, and not bit by bit.
  """
  product = np.eye(topology.workers)
  before = np.inf
  for rounds in range(topology.period * _periods_to_nothing(topology) + 1):
    held = product.sum(axis=1)[:, None]  # 1, or the weights of push-sum
    distance = np.abs(_ratio(product, held) * topology.workers - 1).max()
    if distance <= _EXACT:
      return rounds if before > _NEARLY_EXACT else None
    before = distance
    product = topology.weights[rounds % topology.period] @ product
  return None


def effective_neighbours(topology, decay: float) -> float:
  """How many workers average; see `Topology.effective_neighbours`."""
  decay = arguments.number('effective_neighbours', decay=decay)
  if not 0 <= decay < 1:
    raise ValueError(
      f'effective_neighbours needs a decay from 0 to less than 1, but got '
      f'{decay}.'
    )
  if topology.period == 1 and topology.is_symmetric():
    squares = np.linalg.eigvalsh(topology.weights[0]) ** 2
    variance = np.mean(squares / (1 - decay * squares))
    return float(1 / ((1 - decay) * variance))
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
  never = np.full(numerator.shape, np.inf)  # no weight is left to divide by
  return np.divide(numerator, denominator, out=never, where=denominator > 0)


def _product(rounds: np.ndarray) -> np.ndarray:
  product = rounds[0]
  for weights in rounds[1:]:
    product = weights @ product
  return product


def _reached(a: np.ndarray, b: np.ndarray) -> np.ndarray:
  """Who hears whom by `b` and then `a`: 1 or 0."""
  return np.minimum(a @ b, 1)


def _deviation(rounds: np.ndarray, heard) -> np.ndarray:
  """The product of row-stochastic rounds, minus the mean of the rows `heard`.

  It is subtracted after each round, or what is left would be lost in rounding;
  if it is, zeros are returned: roots would magnify them.
  """
  deviation = np.eye(rounds.shape[1])
  deviation -= deviation[heard].mean(axis=0)
  for weights in rounds:
    before = np.linalg.norm(deviation)
    deviation = weights @ deviation
    deviation -= deviation[heard].mean(axis=0)
    if np.linalg.norm(deviation) <= 1e-13 * before:
      return np.zeros_like(deviation)
  return deviation


def _second_eigenvalue(rounds: np.ndarray) -> float:
  """The second largest modulus, for the product of row-stochastic rounds.

  Workers who all hear each other make a block, and the eigenvalues are those of
  the blocks: of the whole, many of which may be equal, rounding would move them
  far. A block that hears no other has the eigenvalue 1; it is removed from one
  such block, by subtracting its mean, which leaves all others as they are.
  """
  hears = _product(rounds) > 0
  blocks = matrices.parts(hears)
  leads = next(
    block for block in blocks if not np.delete(hears[block], block, 1).any()
  )
  deviation = _deviation(rounds, leads)
  return max(
    np.abs(np.linalg.eigvals(deviation[np.ix_(block, block)])).max()
    for block in blocks
  )


def _periods_to_nothing(topology) -> int:
  """After how many periods no disagreement is left, rounded up; 0 if never."""
  power = _deviation(topology.weights, slice(None))
  periods = 1
  while (size := np.linalg.norm(power)) > 0 and periods < topology.workers:
    power = (power / size) @ (power / size)
    periods *= 2
    if np.linalg.norm(power) <= _EXACT:
      power = np.zeros_like(power)
  return 0 if size else periods


def _is_normal(weights: np.ndarray) -> bool:
  """Whether the product with the transpose is the same from both sides."""
  left, right = weights @ weights.T, weights.T @ weights
  return bool(np.abs(left - right).max() <= 1e-15)


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
