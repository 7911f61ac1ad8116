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


def sgp(z, gradient, adapt, *, steps, weights):
  """Assran et al., 2019, algorithm 1; columns of the weights sum to 1.

  The gradient is taken at z = X / w, and its update added to X.
  """
  x, w = z, np.ones((len(z), 1))
  for t in range(steps):
    x = x + adapt(gradient(z, t))
    x, w = mix(x, weights, t), mix(w, weights, t)
    z = x / w
  return z


def adapt_then_combine(x, gradient, adapt, *, steps, operator):
  """psi = x + A(g), then x <- T(psi); `operator` is (x, t) -> x."""
  for t in range(steps):
    x = operator(x + adapt(gradient(x, t)), t)
  return x


def mix(x, weights, t):
  """X <- W^(t) X, in round t of the period."""
  return weights[t % len(weights)] @ x


def all_reduce(x):
  """X <- (1/n) 1 1^T X."""
  return np.broadcast_to(x.mean(axis=0), x.shape)


def delayed_gossip(weights, delay):
  """x_i <- (1 - a_i) x_i + s_i: what is heard is `delay` applications old.

  s_i is the weighted sum over the others at the time when it was sent, a_i the
  sum of its weights; nothing arrives at first. A run starts with t = 0.
  """
  sent = []

  def apply(x, t):
    if t == 0:
      sent.clear()
    others = weights[t % len(weights)] * (1 - np.eye(len(x)))
    sent.append((others @ x, others.sum(axis=1, keepdims=True)))
    if t < delay:
      return x
    s, a = sent[t - delay]
    return (1 - a) * x + s

  return apply


def kept_by_senders(weights, arrived):
  """The weights [workers, workers] of a round: senders keep what is lost."""
  weights = weights.copy()
  for i, j in np.argwhere(~arrived):
    if i != j:
      weights[j, j] += weights[i, j]
      weights[i, j] = 0
  return weights


def renormalized(weights, arrived):
  """The weights of a round: what arrived is divided by its sum."""
  rows = []
  for i, row in enumerate(weights):
    heard = arrived[i].copy()
    heard[i] = True
    total = row[heard].sum()
    rows.append(
      np.where(heard, row / total, 0) if total else np.eye(len(row))[i]
    )
  return np.array(rows)


def hierarchical_gossip(x, weights, t):
  """X <- (W^(t) kron J) X: machines mix the means of their workers."""
  machines = weights.shape[1]
  means = x.reshape(machines, -1, x.shape[1]).mean(axis=1)
  return np.repeat(mix(means, weights, t), len(x) // machines, axis=0)


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
