"""The algorithms once more: numpy, all workers at once, from the papers.

Each function is the recursion of a paper on stacked arrays, written from its
equations and not from the library, which it must not import.

  x            [workers, d]; row i is the iterate of worker i.
  gradient     (x, t) -> [workers, d]; row i is the gradient of worker i at its
               own iterate, at step t = 0, 1, ...
  adapt        g -> [workers, d]; the update of an optimizer that lives on each
               worker, such as `sgd(0.1)`. It is added.
  weights      [period, workers, workers]; weights[t, i, j] is what receiver i
               puts on sender j in round t of a graph that may change.
"""

import numpy as np


def all_reduce_sgd(x, gradient, adapt, *, steps):
  """Goyal et al., 2017: x <- x + A(1/n sum_j g_j)."""
  for t in range(steps):
    x = x + adapt(all_reduce(gradient(x, t)))
  return x


def dsgd(x, gradient, adapt, *, steps, weights):
  """Lian et al., 2017, algorithm 1: X_{t+1} = W X_t + A(G(X_t))."""
  for t in range(steps):
    x = mix(x, weights, t) + adapt(gradient(x, t))
  return x


def diffusion(x, gradient, adapt, *, steps, weights):
  """Chen and Sayed, 2012: psi = x + A(g), then x_i <- sum_j W_ij psi_j."""
  for t in range(steps):
    psi = x + adapt(gradient(x, t))
    x = mix(psi, weights, t)
  return x


def local_sgd(x, gradient, adapt, *, steps, period):
  """Stich, 2019: all average after the steps numbered H, 2H, ..., from 1."""
  for step in range(1, steps + 1):
    x = x + adapt(gradient(x, step - 1))
    if step % period == 0:
      x = all_reduce(x)
  return x


def decentralized_local_sgd(x, gradient, adapt, *, steps, weights, period):
  """Koloskova et al., 2020: neighbours average after H, 2H, ... steps.

  Meeting number k = 0, 1, ... uses round k of the graph.
  """
  meeting = 0
  for step in range(1, steps + 1):
    x = x + adapt(gradient(x, step - 1))
    if step % period == 0:
      x = mix(x, weights, meeting)
      meeting += 1
  return x


def mix(x, weights, t):
  """X <- W^(t) X, in round t of the period."""
  return weights[t % len(weights)] @ x


def all_reduce(x):
  """X <- (1/n) 1 1^T X."""
  return np.broadcast_to(x.mean(axis=0), x.shape)


def every(operator, period):
  """The operator at applications H, 2H, ... (from 1), nothing in between."""

  def apply(x, t):
    acts = (t + 1) % period == 0
    return operator(x, t // period) if acts else x

  return apply


def damped(operator, rate):
  """(1 - gamma) X + gamma T(X); `rate` maps t to gamma."""
  return lambda x, t: (1 - rate(t)) * x + rate(t) * operator(x, t)


def repeated(operator, rounds):
  """T^k, where each of the k rounds is an application of its own."""

  def apply(x, t):
    for k in range(rounds):
      x = operator(x, t * rounds + k)
    return x

  return apply


def sgd(rate):
  """u = -rate g."""
  return lambda gradient: -rate * gradient


def momentum(rate, decay):
  """Polyak: v <- decay v + g, u = -rate v."""
  velocity = 0.0

  def adapt(gradient):
    nonlocal velocity
    velocity = decay * velocity + gradient
    return -rate * velocity

  return adapt


def adam(rate, decay_1=0.9, decay_2=0.999, epsilon=1e-8):
  """Kingma and Ba, 2015, algorithm 1."""
  first, second, count = 0.0, 0.0, 0

  def adapt(gradient):
    nonlocal first, second, count
    count += 1
    first = decay_1 * first + (1 - decay_1) * gradient
    second = decay_2 * second + (1 - decay_2) * gradient**2
    unbiased_first = first / (1 - decay_1**count)
    unbiased_second = second / (1 - decay_2**count)
    return -rate * unbiased_first / (np.sqrt(unbiased_second) + epsilon)

  return adapt
