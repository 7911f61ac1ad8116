"""The machine that every test sees: eight CPU devices, and no patience.

It is imported before any backend starts, by each process of pytest-xdist too.
JAX_PLATFORMS, where it is set, chooses other devices.
"""

import os

import jax

# A collective that misses a participant waits for minutes, then aborts; a test
# that hangs should fail in seconds.
_TIME_OUTS = (
  '--xla_cpu_collective_call_warn_stuck_timeout_seconds=10',
  '--xla_cpu_collective_call_terminate_timeout_seconds=40',
)
_flags = os.environ.get('XLA_FLAGS', '').split()
os.environ['XLA_FLAGS'] = ' '.join(dict.fromkeys([*_flags, *_TIME_OUTS]))
os.environ.setdefault('MPLBACKEND', 'agg')

if not jax.config.jax_platforms:
  jax.config.update('jax_platforms', 'cpu')
  os.environ['JAX_PLATFORMS'] = 'cpu'  # for the processes that tests start
jax.config.update('jax_num_cpu_devices', 8)
jax.config.update('jax_numpy_rank_promotion', 'raise')
