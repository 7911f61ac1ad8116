"""The toy problem of the tests, with its gradient by hand."""

import jax.numpy as jnp
import numpy as np


class LeastSquares:
  """Linear regression in which every worker has data of its own.

  Worker i has in step t a batch (A, b) and the loss |A k + c - b|^2 / 2, the
  mean over rows, of a kernel k and a bias c. Its targets come from a solution
  of its own, so that workers disagree about the optimum.

  Args:
    workers: how many.
    batches: after so many steps the batches repeat; 1 is the full gradient.
    seed: of all numbers.
  """

  def __init__(self, workers=8, batches=4, seed=0):
    rows, self.dim = 6, 3
    rng = np.random.default_rng(seed)
    self.features = rng.normal(size=(workers, batches, rows, self.dim))
    solutions = rng.normal(size=(workers, self.dim))
    clean = np.einsum('wbrd,wd->wbr', self.features, solutions)
    self.targets = clean + rng.normal(size=clean.shape)
    self.start = rng.normal(size=(workers, self.dim + 1))
    self.batches = batches

  def params(self, x=None):
    """Stacked parameters, from flat numpy ones [workers, dim + 1]."""
    x = self.start if x is None else x
    kernel, bias = x[:, : self.dim], x[:, self.dim]
    return {'kernel': jnp.asarray(kernel), 'bias': jnp.asarray(bias)}

  def flat(self, params):
    """Flat numpy parameters, from stacked ones."""
    kernel, bias = params['kernel'], params['bias']
    return np.concatenate([kernel, np.asarray(bias)[:, None]], axis=1)

  def batch(self, t):
    """The stacked batch of step t."""
    t = t % self.batches
    return jnp.asarray(self.features[:, t]), jnp.asarray(self.targets[:, t])

  def gradient(self, x, t):
    """What `jax.grad` of the loss gives, by hand, for `tests.oracle`."""
    design = self._design()[:, t % self.batches]
    targets = self.targets[:, t % self.batches]
    residual = np.einsum('wrd,wd->wr', design, x) - targets
    return np.einsum('wrd,wr->wd', design, residual) / targets.shape[1]

  def optimum(self):
    """Minimizer [dim + 1] of the mean over workers and batches."""
    design = self._design().reshape(-1, self.dim + 1)
    return np.linalg.lstsq(design, self.targets.ravel(), rcond=None)[0]

  def hessian(self):
    """Hessian of the mean over workers and batches."""
    design = self._design().reshape(-1, self.dim + 1)
    return design.T @ design / len(design)

  def _design(self):
    ones = np.ones((*self.targets.shape, 1))
    return np.concatenate([self.features, ones], axis=-1)
