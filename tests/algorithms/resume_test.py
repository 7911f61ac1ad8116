"""A run can be interrupted at any moment."""

import jax
import numpy as np
import optax
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from tests import helpers
from tests import lossy

STEPS = 8
ADAM = optax.adam(0.1)
LATE = decopt.gossip(lossy.changing(8), delay=3, faults=lossy.FAULTS)
TRANSFORMS = {
  'clocks': decopt.decentralized_local_sgd(
    ADAM, decopt.one_peer_exponential(8), 3
  ),
  'weights_and_faults': decopt.sgp(
    ADAM, lossy.changing_digraph(8), faults=lossy.FAULTS
  ),
  'what_is_in_flight': optax.chain(
    decopt.while_active(ADAM, lossy.FAULTS),
    decopt.mix_iterates(decopt.every(LATE, 2)),
  ),
}


class ResumeTest(parameterized.TestCase):
  @parameterized.named_parameters(helpers.cases(TRANSFORMS, helpers.LAYOUTS))
  def test_resumes_bit_for_bit_at_every_phase_of_a_period(
    self, transform, execute
  ):
    problem = helpers.LeastSquares()
    step = execute(helpers.worker_step(transform))

    def train(params, state, first, last):
      throttle = decopt.Throttle()
      for t in range(first, last):
        params, state = step(params, state, problem.batch(t))
        throttle.admit(params)
      return jax.tree.map(np.asarray, (params, state))

    saved = [
      jax.tree.map(
        np.asarray,
        (problem.params(), execute(transform.init)(problem.params())),
      )
    ]
    for t in range(STEPS - 1):
      saved.append(train(*saved[-1], t, t + 1))
    straight = train(*saved[0], 0, STEPS)
    for t, state in enumerate(saved):
      resumed = train(*state, t, STEPS)
      jax.tree.map(np.testing.assert_array_equal, resumed, straight)


if __name__ == '__main__':
  absltest.main()
