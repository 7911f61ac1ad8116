"""A causal transformer over bytes, small and quick under vmap."""

import jax
import jax.numpy as jnp
from flax import linen as nn

BYTES = 256


class Transformer(nn.Module):
  """Pre-norm decoder with learned positions that predicts the next byte.

  Tokens are rows of a matrix everywhere but in attention: with one axis for the
  batch and one for positions, the products under vmap over weights are a fifth
  slower on a CPU.

  Attributes:
    context: longest sequence.
    width: size of a token's vector.
    layers: number of blocks.
    heads: attention heads; divides `width`.
  """

  context: int = 64
  width: int = 64
  layers: int = 2
  heads: int = 4

  @nn.compact
  def __call__(self, tokens: jax.Array, *, train: bool) -> jax.Array:
    """Maps bytes `[batch, length]` to logits `[batch, length, 256]`."""
    del train  # training and inference are the same
    batch, length = tokens.shape
    small = nn.initializers.normal(0.02)
    table = self.param('embedding', small, (BYTES, self.width))
    positions = self.param('positions', small, (self.context, self.width))
    x = table[tokens] + positions[None, :length]
    x = x.reshape(batch * length, self.width)
    for layer in range(self.layers):
      block = Block(self.heads, length, name=f'block_{layer}')
      x = block(x)
    x = nn.LayerNorm(name='norm')(x)
    logits = nn.Dense(BYTES, name='readout')(x)
    return logits.reshape(batch, length, BYTES)


class Block(nn.Module):
  """Attention and a perceptron, each with its norm before and a sum after.

  Attributes:
    heads: attention heads.
    length: positions of a sequence; row `r` is position `r % length`.
  """

  heads: int
  length: int

  @nn.compact
  def __call__(self, x: jax.Array) -> jax.Array:
    """Maps `[batch * length, width]` to the same shape."""
    width = x.shape[-1]
    y = nn.LayerNorm(name='attention_norm')(x)
    y = nn.Dense(3 * width, use_bias=False, name='query_key_value')(y)
    y = self._attend(*jnp.split(y, 3, axis=-1))
    x = x + nn.Dense(width, use_bias=False, name='attention_out')(y)
    y = nn.LayerNorm(name='mlp_norm')(x)
    y = nn.gelu(nn.Dense(4 * width, name='mlp_in')(y))
    return x + nn.Dense(width, name='mlp_out')(y)

  def _attend(self, query, key, value):
    width = query.shape[-1]
    shape = (-1, self.length, self.heads, width // self.heads)
    query, key, value = (z.reshape(shape) for z in (query, key, value))
    scores = jnp.einsum('bqhd,bkhd->bhqk', query, key) * shape[-1] ** -0.5
    past = jnp.tril(jnp.ones((self.length, self.length), bool))
    scores = jnp.where(past[None, None], scores, -jnp.inf)
    mixed = jnp.einsum('bhqk,bkhd->bqhd', jax.nn.softmax(scores), value)
    return mixed.reshape(-1, width)
