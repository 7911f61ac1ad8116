"""Evaluation, progress, what a person sees, and where workers run."""

import io
import types

import jax.numpy as jnp
import numpy as np
from absl.testing import absltest
from absl.testing import parameterized
from rich import console as rich_console

import decopt
from experiments import display
from experiments import evaluation
from experiments import layouts
from experiments import plots
from experiments import setup
from experiments.progress import Progress
from tests.experiments import small


def linear(examples=10):
  """A workload whose loss is linear in parameters and statistics."""
  x = np.arange(examples, dtype=np.float32)

  def evaluate(params, model_state, batch):
    shift = model_state['shift'] if model_state else 0.0
    return {
      'loss': jnp.mean(params['w'] * batch['x']) + shift,
      'accuracy': jnp.mean((batch['x'] < params['w']).astype(jnp.float32)),
    }

  return types.SimpleNamespace(test={'x': x}, evaluate=evaluate)


def stacked(w, shift=None):
  model_state = {} if shift is None else {'shift': jnp.asarray(shift)}
  return types.SimpleNamespace(
    params={'w': jnp.asarray(w)}, model_state=model_state
  )


class EvaluationTest(parameterized.TestCase):
  @parameterized.parameters(None, 2, 4)
  def test_averaged_mean_and_worst_are_what_they_are_called(self, devices):
    mesh = decopt.make_mesh(devices) if devices else None
    workload = linear()
    evaluate = evaluation.make_evaluate(
      workload, workers=4, mesh=mesh, batch_statistics='local'
    )
    metrics = evaluate(stacked([1.0, 2.0, 3.0, 10.0]), workload.test)
    expected = {
      'loss_averaged': 4 * 4.5,
      'accuracy_averaged': 0.4,
      'loss_mean': 4 * 4.5,
      'accuracy_mean': (0.1 + 0.2 + 0.3 + 1.0) / 4,
      'loss_worst': 10 * 4.5,
      'accuracy_worst': 0.1,
    }
    self.assertEqual(metrics.keys(), expected.keys())
    for name, value in expected.items():
      np.testing.assert_allclose(metrics[name], value, rtol=1e-6)

  def test_batch_statistics_are_averaged_or_each_workers_own(self):
    workload = linear()
    # The accuracy is of the averaged parameters either way; a loss that is
    # not linear in the statistics tells the two apart.
    inner = workload.evaluate

    def evaluate(params, model_state, batch):
      metrics = inner(params, {}, batch)
      return metrics | {'loss': jnp.square(model_state['shift'])}

    workload.evaluate = evaluate
    losses = {}
    for choice in ('local', 'averaged'):
      measure = evaluation.make_evaluate(
        workload, workers=2, mesh=None, batch_statistics=choice
      )
      state = stacked([1.0, 3.0], shift=[1.0, 3.0])
      losses[choice] = float(measure(state, workload.test)['loss_averaged'])
    self.assertEqual(losses, {'local': 5.0, 'averaged': 4.0})

  @parameterized.parameters(1, 3, 10, 64)
  def test_parts_give_the_mean_over_all_examples(self, part):
    workload = linear()
    metrics = evaluation.in_parts(
      workload.evaluate, {'w': 3.0}, {}, workload.test, part
    )
    np.testing.assert_allclose(metrics['loss'], 13.5, rtol=1e-6)
    np.testing.assert_allclose(metrics['accuracy'], 0.3, rtol=1e-6)

  def test_finds_the_worker_that_is_not_finite(self):
    state = stacked([[1.0, 2.0], [np.nan, 0.0], [np.inf, 0.0]], shift=[0, 0, 0])
    np.testing.assert_array_equal(
      evaluation.finite(state), [True, False, False]
    )


class ProgressTest(absltest.TestCase):
  def test_reports_the_mean_since_the_last_report(self):
    progress = Progress(workers=2)
    progress.dispatched(jnp.array([[1.0, 2.0], [3.0, 4.0]]), 2)
    progress.dispatched(jnp.array([[3.0], [5.0]]), 1)
    progress.settle(())
    row = progress.report()
    self.assertEqual((row['step'], row['loss']), (3, 3.0))
    self.assertEqual(row['loss_worst_worker'], 4.0)
    self.assertEqual(row['gradient_evaluations'], 6)
    progress.resume()
    progress.dispatched(jnp.array([[7.0], [9.0]]), 1)
    progress.settle(())
    self.assertEqual(progress.report()['loss'], 8.0)

  def test_continues_between_two_reports(self):
    first = Progress(workers=1)
    first.dispatched(jnp.array([[0.1, 0.7]]), 2)
    first.settle(())
    for progress in (first, Progress(1, first.saved())):
      progress.resume()
      progress.dispatched(jnp.array([[0.3]]), 1)
      progress.settle(())
    self.assertEqual(first.report()['loss'], progress.report()['loss'])

  def test_names_the_first_step_and_worker_that_went_wrong(self):
    progress = Progress(workers=2)
    progress.dispatched(jnp.ones((2, 4)), 4)
    progress.settle(())
    self.assertIsNone(progress.not_finite())
    progress.dispatched(jnp.array([[1, 1, np.nan], [1, np.inf, np.nan]]), 3)
    progress.settle(())
    self.assertEqual(
      progress.not_finite(), 'step 6: the loss of worker 1 is infinite'
    )


class DisplayTest(absltest.TestCase):
  def shown(self, terminal):
    output = io.StringIO()
    console = rich_console.Console(
      file=output, force_terminal=terminal, width=120
    )
    with display.Display(100, 10, console) as screen:
      screen.advance(15)
      screen.report(
        {
          'step': 20,
          'loss': 0.5,
          'consensus_distance': 0.0123,
          'steps_per_second': 10.0,
          'accuracy_averaged': 0.9,
        }
      )
    return output.getvalue()

  def test_elsewhere_a_report_is_a_plain_line(self):
    self.assertEqual(
      self.shown(terminal=False),
      'step  20/100  loss 0.5000  consensus 0.0123  10 steps/s, 0:08 left  '
      'held-out accuracy 0.9000\n',
    )

  def test_a_terminal_gets_a_bar(self):
    shown = self.shown(terminal=True)
    for text in ('20/100', 'loss 0.5000', 'consensus 0.0123', '0:08 left', '━'):
      self.assertIn(text, shown)


class PlotsTest(absltest.TestCase):
  def test_draws_what_there_is(self):
    row = {'step': 1, 'loss': 1.0, 'bytes_sent_per_worker': 8.0}
    held_out = {
      f'{metric}_{which}': 0.5
      for metric in ('loss', 'accuracy')
      for which in ('averaged', 'mean', 'worst')
    }
    for rows in (
      [row | {'consensus_distance': 0.0}],  # workers are equal
      [
        row | {'consensus_distance': 0.1} | held_out,
        row | {'step': 2, 'consensus_distance': 1e-9},
      ],
    ):
      image = plots.curves(rows, 'a title')
      self.assertEqual(image[:8], b'\x89PNG\r\n\x1a\n')


class LayoutsTest(parameterized.TestCase):
  def test_auto_on_cpu_is_a_simulation(self):
    layout = layouts.choose(small.fields(layout='auto', devices=4))
    self.assertEqual((layout.name, layout.mesh), ('simulation', None))

  @parameterized.parameters((4, 4), (6, 6), (11, 1), (16, 8), (64, 8))
  def test_a_mesh_takes_as_many_devices_as_divide_the_workers(
    self, workers, devices
  ):
    fields = small.fields(layout='mesh', workers=workers)
    self.assertEqual(layouts.choose(fields).mesh.size, devices)

  @parameterized.parameters((600, 30), (90, 30), (7, 1), (64, 2))
  def test_a_dispatch_ends_where_something_is_due(self, steps, expected):
    intervals = {'log_every': 30, 'eval_every': 60, 'checkpoint_every': 0}
    self.assertEqual(setup.chunk({'steps': steps, **intervals}), expected)


if __name__ == '__main__':
  absltest.main()
