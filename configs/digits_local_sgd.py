"""Local SGD on digits: 8 workers that meet every 10 steps.

Claim: a tenth of the bytes of averaging at every step, for at most 0.02 of
accuracy less than configs/digits_all_reduce.py. A second of training on 2
cores.

  python -m experiments.train --config=configs/digits_local_sgd.py --workdir=DIR
"""

from configs import digits


def get_config():
  config = digits.get_config()
  config.algorithm.name = 'local_sgd'
  config.algorithm.period = 10
  config.optimizer.name = 'sgd'
  config.optimizer.learning_rate = 0.1
  config.optimizer.momentum = 0.9
  return config
