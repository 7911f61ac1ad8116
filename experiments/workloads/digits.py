"""Handwritten digits: 1,797 images of 8x8 pixels that come with scikit-learn.

Small enough that a run takes seconds, real enough that workers who see
different digits disagree. Source: Alpaydin and Kaynak, `Optical Recognition of
Handwritten Digits <https://doi.org/10.24432/C50P49>`_, 1998.
"""

import functools
import importlib.util
import pathlib
from collections.abc import Sequence

import numpy as np

from experiments.workloads import base

MODELS = ('mlp', 'convnet')
_TEST_EXAMPLES = 360
_SPLIT_SEED = 1797  # of the data, not of a run: every run has the same test set


def digits(
  *,
  model: str = 'mlp',
  hidden: int = 64,
  channels: Sequence[int] = (16, 32),
  norm: str = 'none',
  convolution: str = 'auto',
) -> base.Workload:
  """Handwritten digits, classified by a perceptron or a small convnet.

  Examples are `image` `[8, 8, 1]` float32, scaled to mean 0 and variance 1 over
  all pixels of the training images, and `label` int32 from 0 to 9. 1,437 are
  for training and 360 are held out, always the same.

  Args:
    model: 'mlp' (64-`hidden`-10) or 'convnet' (a 3x3 block for each entry of
      `channels`, then a readout).
    hidden: width of the perceptron's hidden layer.
    channels: features of the convnet's blocks, at most three; each block halves
      the image.
    norm: the convnet's normalization, 'none', 'group' or 'batch'. 'batch' keeps
      running statistics in the model state.
    convolution: 'auto', 'patches' or 'native'; see `convolution.convolve`.

  Returns:
    The workload.

  Raises:
    ValueError: if a name is unknown, a number is out of range, or `norm` is
      asked of the perceptron.
  """
  # Here, because `import experiments.workloads` must not import flax.
  from experiments.workloads import supervised

  module = _module(model, hidden, channels, norm, convolution)
  train, test = load()
  return supervised.supervised(
    'digits',
    module,
    lambda batch: (batch['image'], batch['label']),
    train=train,
    test=test,
    labels=train['label'],
  )


def _module(model, hidden, channels, norm, convolution):
  from experiments.workloads import convolution as convolutions
  from experiments.workloads import networks

  base.check_name('digits model', model, MODELS)
  base.check_name('norm', norm, networks.NORMS)
  base.check_name('convolution method', convolution, convolutions.METHODS)
  base.check_count('workload.hidden', hidden)
  if not isinstance(channels, Sequence) or isinstance(channels, str):
    raise TypeError(
      f'workload.channels is {channels!r}; give the features of each block, '
      'such as (16, 32)'
    )
  for features in channels:
    base.check_count('each entry of workload.channels', features)
  if not 1 <= len(channels) <= 3:
    raise ValueError(
      f'workload.channels has {len(channels)} entries; each halves an 8x8 '
      'image, so give one to three'
    )
  if model == 'convnet':
    return networks.ConvNet(tuple(channels), norm=norm, method=convolution)
  if norm != 'none':
    raise ValueError(
      f"workload.norm is {norm!r}, but the model 'mlp' has no normalization; "
      "use workload.model='convnet' or workload.norm='none'"
    )
  return networks.MLP(hidden)


@functools.cache
def load() -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
  """Reads the digits and splits them.

  Returns:
    `(train, test)`, each `{'image': [n, 8, 8, 1], 'label': [n]}`, read-only;
    1,437 and 360 examples in an order that never changes.
  """
  pixels, label = _pixels_and_labels()
  order = np.random.RandomState(_SPLIT_SEED).permutation(len(label))
  image = (pixels / 16).reshape(-1, 8, 8, 1)[order]
  label = label[order].astype(np.int32)
  seen = image[_TEST_EXAMPLES:]
  image = ((image - seen.mean()) / seen.std()).astype(np.float32)
  image.flags.writeable = label.flags.writeable = False

  def rows(selection):
    return {'image': image[selection], 'label': label[selection]}

  return rows(slice(_TEST_EXAMPLES, None)), rows(slice(_TEST_EXAMPLES))


def _pixels_and_labels():
  """`[1797, 64]` pixels from 0 to 16, and `[1797]` labels."""
  package = importlib.util.find_spec('sklearn')
  if package is None:
    raise ModuleNotFoundError(
      'the workload digits reads the data set of scikit-learn, which is not '
      "installed; install decopt with its extra: pip install 'decopt-jax"
      "[experiments]'"
    )
  folder = pathlib.Path(package.submodule_search_locations[0])
  table = folder / 'datasets' / 'data' / 'digits.csv.gz'
  if table.is_file():
    # The file behind load_digits; importing scikit-learn would take longer than
    # all else that happens before the first step.
    data = np.loadtxt(table, delimiter=',')
    return data[:, :-1], data[:, -1]
  from sklearn import datasets

  return datasets.load_digits(return_X_y=True)
