"""Fields, overrides, and one clear line for each mistake."""

import json
import math
import pathlib
import tempfile

from absl.testing import absltest
from absl.testing import parameterized

from configs import digits
from experiments import config as config_lib
from experiments import errors
from experiments import run_directory
from experiments import setup
from tests.experiments import small


class OverridesTest(parameterized.TestCase):
  @parameterized.parameters(
    '--config.workers=16',
    '--config.optimizer.momentum=0.9',
    '--config.optimizer.schedule.alpha=0.1',
    '--config.workload.hidden',
    '--config.topology.weights=lazy(keep=0.8)',
    '--config.faults.probability=0.1',
    '--noconfig.optimizer.nesterov',
    '--workdir=config.nothing',
    'config.nothing=3',
  )
  def test_fields_and_arguments_of_sections_pass(self, argument):
    config_lib.check_overrides([argument])

  @parameterized.parameters(
    ('--config.workrs=16', "did you mean 'workers'"),
    ('--config.optimzer.name=adam', "did you mean 'optimizer'"),
    ('--config.learning_rate=1', "did you mean 'optimizer.learning_rate'"),
    ('--config.period.x=1', "no field 'period.x'; there are algorithm, "),
    ('--config.steps.x=1', "did you mean 'steps'"),
    ('--config.optimizer=adam', 'as in --config.optimizer.name='),
    ('--config.topology.a.b=1', "no field 'topology.a.b'"),
    ('--config.faults=none', 'as in --config.faults.name='),
    ('--config.fualts.name=none', "did you mean 'faults'"),
    ('-config.sede', "did you mean 'seed'"),
  )
  def test_unknown_fields_are_answered_with_the_closest(self, flag, advice):
    with self.assertRaisesRegex(errors.UserError, advice):
      config_lib.check_overrides(['train', flag])


class ResolveTest(parameterized.TestCase):
  def test_the_result_is_plain_data(self):
    fields = small.fields(workload__channels=(4, 8), workload__model='convnet')
    self.assertEqual(json.loads(json.dumps(fields)), fields)
    self.assertEqual(fields['workload']['channels'], [4, 8])

  def test_another_name_drops_the_arguments_of_the_file(self):
    config = digits.get_config()
    config.optimizer.b1 = 0.95
    config.optimizer.name = 'sgd'
    fields = config_lib.resolve(config, {'optimizer.name'})
    self.assertNotIn('b1', fields['optimizer'])
    self.assertEqual(fields['optimizer']['learning_rate'], 3e-3)

  def test_another_partition_drops_alpha(self):
    config = digits.get_config()
    config.workload.partition = 'iid'
    fields = config_lib.resolve(config, {'workload.partition'})
    self.assertNotIn('alpha', fields['workload'])

  def test_other_faults_drop_the_arguments_of_the_file(self):
    config = digits.get_config()
    config.faults.name = 'link_bursts'
    config.faults.fail = 0.1
    config.faults.seed = 3
    config.faults.name = 'link_drops'
    fields = config_lib.resolve(config, {'faults.name'})
    self.assertEqual(fields['faults'], {'name': 'link_drops', 'seed': 3})

  def test_weights_outlive_another_topology(self):
    config = digits.get_config()
    config.topology.rows = 2
    config.topology.weights = 'lazy'
    config.topology.name = 'ring'
    fields = config_lib.resolve(config, {'topology.name'})
    self.assertEqual(fields['topology'], {'name': 'ring', 'weights': 'lazy'})

  def test_a_config_that_is_no_config_is_refused(self):
    with self.assertRaisesRegex(errors.UserError, 'returned dict; start from'):
      config_lib.resolve({'steps': 3})

  def test_a_field_that_a_file_added_is_refused(self):
    config = digits.get_config()
    with config.unlocked():
      config.step = 3
    with self.assertRaisesRegex(errors.UserError, "did you mean 'steps'"):
      config_lib.resolve(config)

  def test_a_field_that_a_file_left_out_is_named_with_its_default(self):
    config = digits.get_config()
    with config.unlocked():
      del config.seed
    with self.assertRaisesRegex(errors.UserError, "lacks the field 'seed'"):
      config_lib.resolve(config)

  def test_a_section_that_was_replaced_lacks_nothing(self):
    config = digits.get_config()
    with config.unlocked():
      config.optimizer = {'name': 'adam', 'b1': 0.9}
    with self.assertRaisesRegex(
      errors.UserError, "lacks the field 'optimizer.learning_rate'"
    ):
      config_lib.resolve(config)

  def test_differences_name_the_field_and_both_values(self):
    self.assertEqual(
      config_lib.differences(
        small.fields(), small.fields(steps=9, workload__hidden=4)
      ),
      [
        'steps is 60 there and 9 here',
        'workload.hidden is 8 there and 4 here',
      ],
    )

  def test_a_field_that_was_saved_before_it_existed_has_its_default(self):
    old = small.fields()
    del old['faults'], old['optimizer']['clip_norm']
    self.assertEqual(config_lib.differences(old, small.fields()), [])
    faults = {'name': 'link_drops', 'probability': 0.1}
    self.assertEqual(
      config_lib.differences(old, small.fields() | {'faults': faults}),
      [
        'faults.name is none there and link_drops here',
        'faults.probability is absent there and 0.1 here',
      ],
    )

  def test_a_run_of_before_goes_on_in_its_directory(self):
    path = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
    old = small.fields()
    del old['faults']
    (path / 'config.json').write_text(json.dumps(old))
    run_directory.RunDirectory(path, small.fields()).check()
    other = small.fields(faults__name='link_drops', faults__probability=0.1)
    with self.assertRaisesRegex(errors.UserError, 'faults.name is none there'):
      run_directory.RunDirectory(path, other).check()


class MistakesTest(parameterized.TestCase):
  """Bad input gets one line each."""

  @parameterized.named_parameters(
    ('workers', {'workers': 0}, 'config.workers is 0; it must be'),
    ('steps', {'steps': -1}, 'config.steps is -1'),
    ('batch_size', {'batch_size': 0}, 'config.batch_size is 0'),
    ('log_every', {'log_every': 0}, 'config.log_every is 0'),
    ('seed', {'seed': -1}, 'config.seed is -1'),
    ('layout', {'layout': 'meshes'}, "did you mean 'mesh'"),
    ('mapping', {'gradient_mapping': 'vmp'}, "did you mean 'vmap'"),
    ('statistics', {'batch_statistics': 'mean'}, 'one of local, averaged'),
    ('algorithm', {'algorithm.name': 'dsdg'}, "did you mean 'dsgd'"),
    ('topology', {'topology.name': 'rign'}, "did you mean 'ring'"),
    ('workload', {'workload.name': 'digit'}, "did you mean 'digits'"),
    ('optimizer', {'optimizer.name': 'adan0'}, "did you mean 'adan'"),
    ('partition', {'workload.partition': 'idd'}, "did you mean 'iid'"),
    (
      'schedule',
      {'optimizer.schedule.name': 'cosine'},
      "did you mean 'cosine_decay_schedule'",
    ),
    (
      'optimizer_argument',
      {'optimizer.momntum': 0.9, 'optimizer.name': 'sgd'},
      "did you mean 'momentum'",
    ),
    ('workload_argument', {'workload.hiden': 1}, "did you mean 'hidden'"),
    ('text', {'optimizer.b1': 'a'}, "config.optimizer.b1 is 'a', not a number"),
    ('period', {'algorithm.period': 0}, 'period=0; it must be at least 1'),
    ('rate_negative', {'optimizer.learning_rate': -0.1}, r'is -0\.1; it must'),
    ('rate_nan', {'optimizer.learning_rate': math.nan}, 'is nan; it must'),
    (
      'schedule_nan',
      {
        'optimizer.schedule.name': 'linear_schedule',
        'optimizer.schedule.end_value': math.nan,
      },
      'end_value is nan',
    ),
    ('clip', {'optimizer.clip_norm': -1.0}, 'largest norm'),
    ('more_workers_than_examples', {'workers': 2000}, 'at most 1437 workers'),
    (
      'worker_left_empty',
      {'workers': 64, 'workload.alpha': 1e-4},
      'left worker 0 of 64 without an example',
    ),
    (
      'alpha_without_dirichlet',
      {'workload.alpha': 0.5, 'workload.partition': 'iid'},
      'alpha is for the partition dirichlet',
    ),
    ('sizes', {'workload.partition': 'sizes'}, 'one positive number for each'),
    (
      'torus',
      {'topology.name': 'torus', 'topology.rows': 3},
      '3 rows and 1 columns has 3 workers, not 4',
    ),
    ('weights', {'topology.weights': 'metroplis'}, "did you mean 'metropolis'"),
    (
      'topology_argument',
      {'topology.name': 'erdos_renyi', 'topology.probabilty': 0.5},
      "did you mean 'probability'",
    ),
    (
      'topology_inside',
      {'topology.name': 'alternate', 'topology.of': 'ring,torus(rows=3)'},
      '3 rows and 1 columns has 3 workers, not 4',
    ),
    (
      'directed',
      {'topology.name': 'random_out_degree'},
      'decentralized_local_sgd needs',
    ),
    (
      'hypercube',
      {'topology.name': 'hypercube', 'workers': 6},
      'power of two as workers, but got 6',
    ),
    (
      'too_few_devices',
      {'layout': 'mesh', 'devices': 16, 'workers': 16},
      '16 devices, but jax sees 8 cpu',
    ),
    (
      'devices_do_not_divide',
      {'layout': 'mesh', 'devices': 3},
      '4 workers do not divide over 3 devices; use --config.devices=2',
    ),
    ('flat', {'gradient_mapping': 'flat'}, "'flat'.* lets them differ"),
    (
      'unrolled_mesh',
      {'gradient_mapping': 'unrolled', 'layout': 'mesh'},
      'config.gradient_mapping=.unrolled.* a mesh',
    ),
  )
  def test_is_one_line_that_says_what_to_do(self, overrides, advice):
    with self.assertRaisesRegex(errors.UserError, advice) as caught:
      setup.build(
        small.resolved(digits.get_config(), small.OVERRIDES | overrides)
      )
    self.assertNotIn('\n', str(caught.exception))
    self.assertEqual(caught.exception.code, 2)

  def test_a_missing_argument_is_named(self):
    config = digits.get_config()
    config.algorithm.name = 'local_sgd'
    with self.assertRaisesRegex(errors.UserError, '--config.algorithm.period='):
      setup.build(config_lib.resolve(config))


if __name__ == '__main__':
  absltest.main()
