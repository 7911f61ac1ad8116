"""Python's own source, byte by byte: text that every machine already has.

The modules of the standard library are read in alphabetical order up to a
budget and cut into windows. Every tenth file is held out, whole, so that no
held-out window was seen in another place of the same file. A window's label is
its file: a partition by label then gives workers whole modules, which differ in
vocabulary as the users of a phone keyboard do.
"""

import pathlib
import sys
import sysconfig

import numpy as np

from experiments.workloads import base

HELD_OUT_EVERY = 10
_TEST_WINDOWS = 256


def text(
  *,
  context: int = 64,
  width: int = 64,
  layers: int = 2,
  heads: int = 4,
  corpus_bytes: int = 2_000_000,
) -> base.Workload:
  """The standard library's source, read by a byte-level causal transformer.

  An example is `bytes` `[context + 1]` uint8: the model sees the first
  `context` bytes and predicts the last `context`. The loss is in nats per byte;
  accuracy counts next bytes. Evaluation uses at most 256 windows, spread evenly
  over the held-out files. Machines with the same Python have the same data.

  Args:
    context: bytes the model sees.
    width: size of a byte's vector; a multiple of `heads`.
    layers: number of blocks.
    heads: attention heads.
    corpus_bytes: how much source to read, held-out files included.

  Returns:
    The workload.

  Raises:
    ValueError: if a number is out of range, or if this Python comes without
      enough of its source.
  """
  # Here, because `import experiments.workloads` must not import flax.
  from experiments.workloads import supervised
  from experiments.workloads import transformer

  base.check_count('workload.context', context)
  base.check_count('workload.width', width)
  base.check_count('workload.layers', layers)
  base.check_count('workload.heads', heads)
  base.check_count('workload.corpus_bytes', corpus_bytes)
  if width % heads:
    raise ValueError(
      f'workload.width is {width}, which workload.heads={heads} does not '
      f'divide; use width={width // heads * heads + heads}'
    )
  train, test, labels = load(context, corpus_bytes)
  return supervised.supervised(
    'text',
    transformer.Transformer(context, width, layers, heads),
    _view,
    train={'bytes': train},
    test={'bytes': test},
    labels=labels,
  )


def _view(batch):
  tokens = batch['bytes'].astype(np.int32)
  return tokens[:, :-1], tokens[:, 1:]


def load(
  context: int, corpus_bytes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Reads the source and cuts it into windows.

  Args:
    context: bytes of a window, less the one to predict at its end.
    corpus_bytes: how much source to read.

  Returns:
    `(train, test, labels)`: windows `[n, context + 1]` and `[m, context + 1]`
    uint8, and the number of each training window's file, `[n]` int32.

  Raises:
    ValueError: if there is too little source to train and test on.
  """
  seen, held_out = files(corpus_bytes)
  train = [windows(source, context) for source in seen]
  test = [windows(source, context) for source in held_out]
  if not sum(map(len, train)) or not sum(map(len, test)):
    raise ValueError(
      f'found {len(seen)} training files and {len(held_out)} held-out files of '
      f'source in {_folder()}, too little for windows of {context} bytes with '
      f'workload.corpus_bytes={corpus_bytes}. Raise corpus_bytes, lower '
      'context, or use a Python that comes with its source'
    )
  labels = np.repeat(np.arange(len(train), dtype=np.int32), [*map(len, train)])
  test = np.concatenate(test)
  spread = np.linspace(0, len(test) - 1, min(len(test), _TEST_WINDOWS))
  return np.concatenate(train), test[spread.astype(int)], labels


def files(corpus_bytes: int) -> tuple[list[bytes], list[bytes]]:
  """Sources of the standard library's modules, apart by file.

  Args:
    corpus_bytes: how much to read; the last file is cut.

  Returns:
    `(train, held_out)`: the texts, in the alphabetical order of the modules.
  """
  paths = [_folder() / f'{name}.py' for name in sorted(sys.stdlib_module_names)]
  sources = []
  left = corpus_bytes
  for path in paths:
    if left > 0 and path.is_file():
      sources.append(path.read_bytes()[:left])
      left -= len(sources[-1])
  held_out = sources[HELD_OUT_EVERY - 1 :: HELD_OUT_EVERY]
  del sources[HELD_OUT_EVERY - 1 :: HELD_OUT_EVERY]
  return sources, held_out


def _folder():
  return pathlib.Path(sysconfig.get_paths()['stdlib'])


def windows(source: bytes, context: int) -> np.ndarray:
  """Cuts a text into windows that predict each of its bytes at most once.

  Args:
    source: the text.
    context: bytes of a window, less the one to predict at its end.

  Returns:
    `[n, context + 1]` uint8; each window starts with the last byte of the one
    before, and what does not fill a window at the end is dropped.

  Example:
    >>> [bytes(window) for window in windows(b'abcdefgh', 3)]
    [b'abcd', b'defg']
  """
  count = max(len(source) - 1, 0) // context
  starts = context * np.arange(count)[:, None]
  offsets = np.arange(context + 1)[None]
  return np.frombuffer(source, np.uint8)[starts + offsets]
