"""One step of gossip SGD with decopt, as a user would write it."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

import decopt

WORKERS = 8
random = np.random.default_rng(0)
images = random.standard_normal((WORKERS, 32, 784), np.float32)
labels = random.integers(10, size=(WORKERS, 32))
params = {
  'hidden': 0.05 * random.standard_normal((784, 256), np.float32),
  'readout': 0.05 * random.standard_normal((256, 10), np.float32),
}

optimizer = optax.chain(
  optax.sgd(0.01),
  decopt.mix_iterates(decopt.gossip(decopt.ring(WORKERS))),
)


def loss_fn(params, images, labels):
  logits = jax.nn.relu(images @ params['hidden']) @ params['readout']
  picked = jnp.take_along_axis(logits, labels[:, None], axis=-1)[:, 0]
  return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - picked)


def step(params, opt_state, images, labels):
  loss, grads = jax.value_and_grad(loss_fn)(params, images, labels)
  updates, opt_state = optimizer.update(grads, opt_state, params)
  return optax.apply_updates(params, updates), opt_state, loss


params = decopt.replicate(params, WORKERS)
opt_state = decopt.spmd(optimizer.init, workers=WORKERS)(params)
step = decopt.spmd(step, workers=WORKERS, donate_argnums=(0, 1))
params, opt_state, losses = step(params, opt_state, images, labels)
print(*np.asarray(losses))
