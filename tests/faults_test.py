"""What fault models draw: rates, spells, and the same on everybody."""

import jax
import jax.numpy as jnp
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized

import decopt
from tests import helpers
from tests import lossy

STEPS = 400
WORKERS = 12


def _draws(faults, workers=WORKERS, steps=STEPS):
  """(delivered [steps, workers, workers], active [steps, workers])."""

  @jax.jit
  def run():
    def body(state, step):
      draw, state = faults.draw(state, step, workers)
      return state, (draw.delivered, draw.active)

    numbers = jnp.arange(steps, dtype=jnp.int32)
    return jax.lax.scan(body, faults.init(workers), numbers)[1]

  return map(np.asarray, run())


def _spells(bad):
  """The lengths of runs of True along the first axis."""
  lengths = []
  for column in bad.reshape(len(bad), -1).T:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], column, [0]])))
    lengths += (edges[1::2] - edges[::2]).tolist()
  return np.array(lengths)


def _off_diagonal(delivered):
  return delivered[:, ~np.eye(delivered.shape[-1], dtype=bool)]


class LinkDropsTest(parameterized.TestCase):
  @parameterized.parameters(0.0, 0.1, 0.5, 1.0)
  def test_loses_as_many_as_it_says(self, probability):
    delivered, active = _draws(decopt.link_drops(probability))
    lost = ~_off_diagonal(delivered)
    self.assertEqual(lost.shape, (STEPS, 132))
    tolerance = 5 * np.sqrt(probability * (1 - probability) / lost.size)
    np.testing.assert_allclose(lost.mean(), probability, atol=tolerance)
    self.assertTrue(active.all())

  def test_links_and_rounds_are_independent(self):
    delivered, _ = _draws(decopt.link_drops(0.5))
    lost = ~_off_diagonal(delivered)
    for first, second in (
      (lost[:-1], lost[1:]),
      (lost[:, :-1], lost[:, 1:]),
      (delivered[:, 1, 0], delivered[:, 0, 1]),
    ):
      correlation = np.corrcoef(first.ravel(), second.ravel())[0, 1]
      self.assertLess(abs(correlation), 5 / np.sqrt(first.size))


class LinkBurstsTest(parameterized.TestCase):
  def test_is_bad_as_often_and_as_long_as_it_says(self):
    delivered, active = _draws(decopt.link_bursts(0.05, 0.2), steps=2000)
    lost = ~_off_diagonal(delivered)
    np.testing.assert_allclose(lost[100:].mean(), 0.05 / 0.25, rtol=0.05)
    np.testing.assert_allclose(_spells(lost).mean(), 1 / 0.2, rtol=0.05)
    self.assertTrue(active.all())

  def test_all_links_are_good_at_first(self):
    delivered, _ = _draws(decopt.link_bursts(0.1, 0.0), workers=60, steps=3)
    lost = 1 - _off_diagonal(delivered).mean(axis=1)
    np.testing.assert_allclose(lost, [0.1, 0.19, 0.271], atol=0.03)

  def test_without_recovery_a_link_stays_down(self):
    delivered, _ = _draws(decopt.link_bursts(0.1, 0.0))
    self.assertTrue((delivered[1:] <= delivered[:-1]).all())
    self.assertFalse(delivered[-1].any())

  def test_both_states_may_lose_messages(self):
    faults = decopt.link_bursts(0.1, 0.1, good_loss=0.1, bad_loss=0.7)
    delivered, _ = _draws(faults, steps=2000)
    lost = ~_off_diagonal(delivered)[100:]
    np.testing.assert_allclose(lost.mean(), (0.1 + 0.7) / 2, rtol=0.03)
    # One state lasts: a message is lost more often after a lost one.
    again = (lost[1:] & lost[:-1]).sum() / lost[:-1].sum()
    bad = 0.5 * 0.7 / 0.4  # the state given a loss
    still = 0.9 * bad + 0.1 * (1 - bad)
    np.testing.assert_allclose(
      again, 0.7 * still + 0.1 * (1 - still), rtol=0.03
    )

  def test_a_chain_without_memory_is_independent_drops(self):
    delivered, _ = _draws(decopt.link_bursts(0.3, 0.7))
    lost = ~_off_diagonal(delivered)
    np.testing.assert_allclose(lost.mean(), 0.3, atol=0.01)
    np.testing.assert_allclose(lost[0].mean(), 0.3, atol=0.2)
    correlation = np.corrcoef(lost[:-1].ravel(), lost[1:].ravel())[0, 1]
    self.assertLess(abs(correlation), 5 / np.sqrt(lost.size))


class InactiveWorkersTest(parameterized.TestCase):
  def test_is_away_as_often_and_as_long_as_it_says(self):
    faults = decopt.inactive_workers(0.05, 0.2)
    delivered, active = _draws(faults, workers=60, steps=2000)
    np.testing.assert_allclose((~active[100:]).mean(), 0.2, rtol=0.05)
    np.testing.assert_allclose(_spells(~active).mean(), 5, rtol=0.05)
    self.assertTrue(delivered.all())

  def test_who_is_away_neither_sends_nor_receives(self):
    faults = decopt.inactive_workers(0.3, 0.3)
    _, active = _draws(faults, steps=50)
    for directed in (False, True):
      arrived = lossy.arrivals(faults, WORKERS, directed=directed)
      np.testing.assert_array_equal(
        arrived, active[:, :, None] & active[:, None]
      )

  def test_without_rejoining_all_leave_in_the_end(self):
    _, active = _draws(decopt.inactive_workers(0.1, 0.0))
    self.assertTrue((active[1:] <= active[:-1]).all())
    self.assertFalse(active[-1].any())


class CombinedTest(parameterized.TestCase):
  def test_what_any_of_them_loses_is_lost(self):
    parts = [
      decopt.link_drops(0.2),
      decopt.link_bursts(0.1, 0.3),
      decopt.inactive_workers(0.1, 0.3),
      decopt.inactive_workers(0.1, 0.3, seed=1),
    ]
    delivered, active = _draws(decopt.combined(*parts))
    separate = [tuple(_draws(part)) for part in parts]
    np.testing.assert_array_equal(
      delivered, np.all([links for links, _ in separate], axis=0)
    )
    np.testing.assert_array_equal(
      active, np.all([workers for _, workers in separate], axis=0)
    )

  def test_of_nothing_loses_nothing(self):
    delivered, active = _draws(decopt.combined())
    self.assertTrue(delivered.all() and active.all())

  def test_kinds_with_one_seed_are_independent(self):
    parts = decopt.link_drops(0.5), decopt.inactive_workers(0.5, 0.5)
    (delivered, _), (_, active) = map(_draws, parts)
    correlation = np.corrcoef(delivered[:, 0].ravel(), active.ravel())[0, 1]
    self.assertLess(abs(correlation), 5 / np.sqrt(active.size))


class ArrivalsTest(parameterized.TestCase):
  def test_directions_of_a_link_fail_together_or_on_their_own(self):
    faults = decopt.link_drops(0.3)
    both = lossy.arrivals(faults, WORKERS, directed=False, steps=STEPS)
    np.testing.assert_array_equal(both, both.swapaxes(1, 2))
    np.testing.assert_allclose(_off_diagonal(both).mean(), 0.7, atol=0.02)
    single = lossy.arrivals(faults, WORKERS, directed=True, steps=STEPS)
    self.assertFalse((single == single.swapaxes(1, 2)).all())
    np.testing.assert_array_equal(np.tril(single), np.tril(both))


class SeedTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('drops', lambda seed: decopt.link_drops(0.5, seed=seed)),
    ('bursts', lambda seed: decopt.link_bursts(0.5, 0.5, seed=seed)),
    ('inactive', lambda seed: decopt.inactive_workers(0.5, 0.5, seed=seed)),
  )
  def test_decides_everything(self, build):
    first, again, other = (
      np.concatenate([x.ravel() for x in _draws(build(seed))])
      for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    self.assertGreater((first != other).mean(), 0.03)

  def test_settings_of_jax_do_not(self):
    expected, _ = _draws(lossy.FAULTS)
    with jax.enable_x64(True), jax.default_prng_impl('rbg'):
      drawn, _ = _draws(lossy.FAULTS)
    np.testing.assert_array_equal(drawn, expected)
    delivered, state = [], lossy.FAULTS.init(WORKERS)
    for t in range(3):
      draw, state = lossy.FAULTS.draw(state, t, WORKERS)
      delivered.append(draw.delivered)
    np.testing.assert_array_equal(delivered, expected[:3])

  def test_these_are_the_draws_of_every_version_of_jax(self):
    # Runs that are compared over the years lose the same messages.
    draw, _ = decopt.link_drops(0.5, seed=7).draw((), 3, 4)
    expected = [[0, 1, 1, 1], [1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 0, 0]]
    np.testing.assert_array_equal(draw.delivered.astype(int), expected)

  @parameterized.named_parameters(helpers.cases(helpers.LAYOUTS))
  def test_the_layout_does_not(self, execute):
    def run(x):
      state, results = lossy.FAULTS.init(8), []
      for t in range(3):
        draw, state = lossy.FAULTS.draw(state, decopt.Clock.start(t).count, 8)
        results.append(decopt.Shared(draw))
      return results, x

    results, _ = execute(run)(jnp.zeros(8))
    delivered, active = _draws(lossy.FAULTS, workers=8, steps=3)
    for t, shared in enumerate(results):
      np.testing.assert_array_equal(shared.value.delivered, delivered[t])
      np.testing.assert_array_equal(shared.value.active, active[t])


class RefusalTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('above', lambda: decopt.link_drops(1.5), ValueError, r'probability=1\.5'),
    ('below', lambda: decopt.link_bursts(0.1, -1), ValueError, 'recover=-1'),
    (
      'nan',
      lambda: decopt.inactive_workers(float('nan'), 1),
      ValueError,
      'leave=nan',
    ),
    ('text', lambda: decopt.link_drops('0.1'), TypeError, "'0.1' of type str"),
    ('bool', lambda: decopt.link_drops(True), TypeError, 'True of type bool'),
    (
      'loss',
      lambda: decopt.link_bursts(0.1, 0.1, bad_loss=2),
      ValueError,
      'bad_loss=2',
    ),
    (
      'number_for_a_model',
      lambda: decopt.combined(0.1),
      TypeError,
      r'combined got 0\.1 as a fault model.*link_drops\(0\.1\)',
    ),
  )
  def test_says_what_it_got_and_what_it_needs(self, build, error, message):
    with self.assertRaisesRegex(error, message):
      build()


if __name__ == '__main__':
  absltest.main()
