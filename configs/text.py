"""A byte-level transformer on the standard library's source, by gossip.

Files are divided by module, so workers read different authors. The loss is in
nats a byte.

Claim: TODO

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
