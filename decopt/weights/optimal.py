"""Weights for which a graph agrees as fast as it can."""

import warnings

import numpy as np

from decopt import matrices
from decopt.topology import Topology
from decopt.weights import degrees
from decopt.weights import reading

_NOTHING = 1e-6  # what a solver leaves on a link that it does not want


def best_constant(graph) -> Topology:
  r"""The same weight on every link, the one that agrees fastest.

  Let :math:`L` be the Laplacian of a round, with the degrees :math:`d_i` on its
  diagonal and -1 for each link, and :math:`\lambda_1 \geq \dots \geq
  \lambda_{n-1} > 0` its eigenvalues. Then

  .. math::

    W = I - a L, \qquad
    a = \min\Big(\frac{2}{\lambda_1 + \lambda_{n-1}},\,
                 \frac{1}{d_{\max}}\Big) .

  The first is the best of all constants. It is larger than the second where
  :math:`\lambda_1 + \lambda_{n-1} < 2 d_{\max}`, as on a star of 4 or more, and
  there the busiest worker would get a negative weight on itself. As the factor
  :math:`\max(|1 - a \lambda_1|, |1 - a \lambda_{n-1}|)` only falls on the way
  to it, the second is then the best for weights that are not negative.

  If a round falls into parts, :math:`\lambda_{n-1}` is the smallest eigenvalue
  that is not 0: the constant is the best for agreeing within the parts.

  Args:
    graph: as for `metropolis`.

  Raises:
    TypeError, ValueError: as for `metropolis`.

  Example:
    >>> best_constant(decopt.ring(4)).weights[0, 0].round(6).tolist()
    [0.333333, 0.333333, 0.0, 0.333333]

  References:
    Xiao and Boyd, `Fast linear iterations for distributed averaging
    <https://doi.org/10.1016/j.sysconle.2004.02.022>`_, 2004.
  """
  name, links = reading.links_of(graph, 'best_constant')
  return degrees.on_links(
    name, np.stack([_constant(matrix) * matrix for matrix in links])
  )


def fastest_mixing(graph) -> Topology:
  r"""The symmetric weights on a graph that agree fastest, by optimization.

  .. math::

    \min_W \; \|W - J\|_2 \quad \text{subject to} \quad
    W = W^\top, \; W \mathbf 1 = \mathbf 1, \; W_{ij} \geq 0, \;
    W_{ij} = 0 \text{ if } i, j \text{ are not linked,}

  where :math:`J` is the matrix of entries :math:`1/n`: a semidefinite program,
  solved for each round, and within it for each part of the graph by itself.
  Links to which the solver gives less than 1e-6 get none. 30 workers
  take seconds, 60 take ten times as long.

  Args:
    graph: as for `metropolis`.

  Raises:
    ImportError: if cvxpy is not installed.
    TypeError, ValueError: as for `metropolis`.
    RuntimeError: if the solver fails or does not get to the optimum.

  Example:
    >>> fastest_mixing(decopt.ring(4)).weights[0, 0].round(4).tolist()
    [0.3333, 0.3333, 0.0, 0.3333]

  References:
    Boyd, Diaconis and Xiao, `Fastest mixing Markov chain on a graph
    <https://doi.org/10.1137/S0036144503423264>`_, 2004.
  """
  name, links = reading.links_of(graph, 'fastest_mixing')
  weights = np.zeros(links.shape)
  for t, matrix in enumerate(links):
    for part in matrices.parts(matrix):
      if len(part) > 1:
        inside = np.ix_(part, part)
        weights[t][inside] = _solved(matrix[inside])
  return degrees.on_links(name, weights)


def _constant(links: np.ndarray) -> float:
  """The weight of `best_constant` on each of the links."""
  if not links.any():
    return 0.0
  degree = links.sum(axis=1)
  eigenvalues = np.linalg.eigvalsh(np.diag(degree) - links.astype(float))
  zeros = len(matrices.parts(links))
  smallest = eigenvalues[zeros]
  return min(2 / (eigenvalues[-1] + smallest), 1 / degree.max())


def _solved(links: np.ndarray) -> np.ndarray:
  """The fastest weights on the links of a connected graph; 0 elsewhere."""
  try:
    import cvxpy
  except ImportError:
    raise ImportError(
      "fastest_mixing needs cvxpy: pip install 'decopt-jax[solver]'. Or use "
      'decopt.best_constant(graph), which needs no solver.'
    ) from None
  workers = len(links)
  ends = np.argwhere(np.triu(links))
  differences = np.zeros((workers, len(ends)))
  for link, (i, j) in enumerate(ends):
    differences[i, link], differences[j, link] = 1, -1
  weight = cvxpy.Variable(len(ends), nonneg=True)
  laplacian = differences @ cvxpy.diag(weight) @ differences.T
  deviation = np.eye(workers) - 1 / workers - laplacian
  factor = cvxpy.Variable()
  problem = cvxpy.Problem(
    cvxpy.Minimize(factor),
    [
      factor * np.eye(workers) - deviation >> 0,
      factor * np.eye(workers) + deviation >> 0,
      np.abs(differences) @ weight <= 1,
    ],
  )
  try:
    with warnings.catch_warnings():  # of an inaccurate solution: the error says
      warnings.simplefilter('ignore')
      problem.solve(solver=cvxpy.CLARABEL)
    ended = f'with the status {problem.status!r}'
  except cvxpy.error.SolverError as error:
    ended = f'in an error: {error}'
  if problem.status != cvxpy.OPTIMAL:
    raise RuntimeError(
      f'fastest_mixing on {workers} workers and {len(ends)} links: the solver '
      f'ended {ended}. Use decopt.best_constant(graph), which needs none.'
    )
  return _cleaned(workers, ends, weight.value)


def _cleaned(workers: int, ends: np.ndarray, weight: np.ndarray) -> np.ndarray:
  """A solver's weights as a symmetric matrix with rows of at most 1."""
  weights = np.zeros((workers, workers))
  i, j = ends.T
  weights[i, j] = weights[j, i] = np.where(weight > _NOTHING, weight, 0)
  sums = np.maximum(weights.sum(axis=1), 1)
  return weights / np.maximum(sums[:, None], sums)
