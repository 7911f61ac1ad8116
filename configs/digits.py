"""D-PSGD..."""

from experiments import config as config_lib


def get_config():
  config = config_lib.default()
  config.workload = {
    'name': 'digits', 'partition': 'dirichlet', 'alpha': 0.5
  }
  config.topology.name = 'one_peer_exponential'
  config.algorithm.name = 'diffusion'
  config.optimizer.name = 'adam'
  config.optimizer.learning_rate = 3e-3
  config.steps = 600
  config.log_every = 20
  config.eval_every = 100
  config.checkpoint_every = 100
  return config
