"""A byte-level transformer on the standard library's source, by gossip.

Whole files go to the workers, so each reads other modules. The loss is in nats
a byte; a guess costs 5.55.

Claim: held-out loss 2.24, all workers alike in the end because the learning
rate goes to 0. With --config.algorithm.name=all_reduce_sgd it is 2.06: the rest
is what two neighbours and other reading cost. About 40 seconds on 2 cores.

  python -m experiments.train --config=configs/text.py --workdir=DIR
"""

from experiments import config as config_lib


def get_config():
  config = config_lib.default()
  config.workload.name = 'text'
  config.workload.partition = 'by_label'
  config.workers = 8
  config.topology.name = 'ring'
  config.algorithm.name = 'diffusion'
  config.optimizer.name = 'adamw'
  config.optimizer.learning_rate = 3e-3
  config.optimizer.schedule.name = 'cosine_decay_schedule'
  config.batch_size = 16
  config.steps = 300
  config.log_every = 10
  config.eval_every = 50
  config.checkpoint_every = 100
  return config
