"""The models of the bench by hand: losses of one worker's batch, plain JAX.

They take the parameters of the models they stand against, under the same names,
and compute the same numbers, but share no code with them.
"""

import functools

import jax
import jax.numpy as jnp


def mlp_loss(params, batch) -> jax.Array:
  """Cross-entropy of a perceptron with one hidden layer of ReLUs.

  Args:
    params: ``{'Dense_0': {'kernel', 'bias'}, 'Dense_1': {'kernel', 'bias'}}``.
    batch: ``images [batch, pixels]`` and ``labels [batch]``.
  """
  hidden = jax.nn.relu(_affine(params['Dense_0'], batch['images']))
  return _cross_entropy(_affine(params['Dense_1'], hidden), batch['labels'])


def convnet_loss(params, batch) -> jax.Array:
  """Cross-entropy of blocks of 3x3 convolution, 2x2 max-pooling and ReLU.

  Args:
    params: ``{'Conv_0': {'kernel', 'bias'}, ..., 'Dense_0': {...}}``.
    batch: ``images [batch, height, width, channels]`` and ``labels [batch]``.
  """
  x = batch['images']
  for layer in range(len(params) - 1):
    x = jax.nn.relu(_pool(_convolve(params[f'Conv_{layer}'], x)))
  x = x.reshape(x.shape[0], -1)
  return _cross_entropy(_affine(params['Dense_0'], x), batch['labels'])


def transformer_loss(params, batch, *, heads: int) -> jax.Array:
  """Cross-entropy of the next byte under a pre-norm causal transformer.

  Args:
    params: as those of `workloads.transformer.Transformer`.
    batch: ``bytes [batch, length + 1]`` uint8.
    heads: attention heads.
  """
  tokens = batch['bytes'].astype(jnp.int32)
  seen, targets = tokens[:, :-1], tokens[:, 1:]
  length = seen.shape[1]
  x = params['embedding'][seen] + params['positions'][None, :length]
  x = x.reshape(-1, x.shape[-1])
  attend = functools.partial(_attend, length=length, heads=heads)
  for layer in range(sum(name.startswith('block_') for name in params)):
    block = params[f'block_{layer}']
    y = _normalize(block['attention_norm'], x)
    y = attend(y @ block['query_key_value']['kernel'])
    x = x + y @ block['attention_out']['kernel']
    y = _affine(block['mlp_in'], _normalize(block['mlp_norm'], x))
    x = x + _affine(block['mlp_out'], jax.nn.gelu(y))
  logits = _affine(params['readout'], _normalize(params['norm'], x))
  return _cross_entropy(logits, targets.reshape(-1))


def _attend(y, *, length, heads):
  """Maps queries, keys and values beside each other to ``[rows, width]``."""
  rows, width = y.shape[0], y.shape[1] // 3
  y = y.reshape(rows // length, length, 3, heads, width // heads)
  query, key, value = y[:, :, 0], y[:, :, 1], y[:, :, 2]
  scores = jnp.einsum('bqhd,bkhd->bhqk', query, key)
  scores = scores / (width // heads) ** 0.5
  past = jnp.tril(jnp.ones((length, length), bool))
  scores = jnp.where(past[None, None], scores, -jnp.inf)
  mixed = jnp.einsum('bhqk,bkhd->bqhd', jax.nn.softmax(scores), value)
  return mixed.reshape(rows, width)


def _normalize(params, x):
  mean = jnp.mean(x, axis=-1, keepdims=True)
  variance = jnp.mean(x * x, axis=-1, keepdims=True) - mean * mean
  scale = jax.lax.rsqrt(variance + 1e-6) * params['scale'][None]
  return (x - mean) * scale + params['bias'][None]


def _affine(params, x):
  return x @ params['kernel'] + params['bias'][None]


def _convolve(params, x):
  """A 3x3 convolution as one matrix product, its patches made in two stages.

  Three shifted copies beside each other give the columns of a patch, three of
  those the rows: six copies of slices instead of nine.
  """
  kernel = params['kernel']
  batch, height, width, _ = x.shape
  x = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
  x = jnp.concatenate([x[:, :, j : j + width] for j in range(3)], axis=-1)
  x = jnp.concatenate([x[:, i : i + height] for i in range(3)], axis=-1)
  x = x.reshape(-1, x.shape[-1]) @ kernel.reshape(-1, kernel.shape[-1])
  x = x + params['bias'][None]
  return x.reshape(batch, height, width, -1)


def _pool(x):
  """2x2 max-pooling: the larger of two rows, then of two columns.

  With its gradient, this is faster than one reduction of a reshaped array.
  """
  batch, height, width, channels = x.shape
  x = x.reshape(batch, height // 2, 2, width // 2, 2, channels)
  x = jnp.maximum(x[:, :, 0], x[:, :, 1])
  return jnp.maximum(x[:, :, :, 0], x[:, :, :, 1])


def _cross_entropy(logits, labels):
  picked = jnp.take_along_axis(logits, labels[:, None], axis=-1)[:, 0]
  return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - picked)
