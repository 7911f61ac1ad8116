"""The binary that shows topologies, and the text and the table behind it."""

import io
import pathlib
import sys
import tempfile

import numpy as np
from absl.testing import absltest
from absl.testing import parameterized
from rich import console as rich_console

import decopt
from experiments import errors
from experiments import graph_report
from tests.experiments import small


def command(*arguments):
  return [sys.executable, '-m', 'experiments.topology', *arguments]


class ReadTest(parameterized.TestCase):
  def test_names_with_arguments_become_topologies(self):
    found = graph_report.read('ring, torus(rows=2),ring(directed=True)', 8)
    self.assertEqual(
      found,
      [
        ('ring', decopt.ring(8)),
        ('torus(rows=2)', decopt.torus(2, 4)),
        ('ring(directed=True)', decopt.ring(8, directed=True)),
      ],
    )

  def test_weights_are_for_all_that_name_none(self):
    found = graph_report.read(
      'ring,ring(weights=lazy),ring(weights=None)', 8, 'lazy(keep=0.9)'
    )
    ring = decopt.ring(8)
    expected = [decopt.lazy(ring, 0.9), decopt.lazy(ring), ring]
    self.assertEqual([topology for _, topology in found], expected)
    self.assertEqual(found[0][0], 'ring, lazy(keep=0.9)')
    self.assertEqual(found[1][0], 'ring(weights=lazy)')

  def test_the_seed_is_for_random_graphs_that_name_none(self):
    found = graph_report.read('ring,expander,expander(seed=1)', 16, seed=5)
    expected = [
      decopt.ring(16),
      decopt.expander(16, seed=5),
      decopt.expander(16, seed=1),
    ]
    self.assertEqual([topology for _, topology in found], expected)

  def test_workers_are_those_of_a_topology_that_has_a_number(self):
    for text, workers in (('ring', 16), ('ring,davis_social', 32)):
      for _, topology in graph_report.read(text):
        self.assertEqual(topology.workers, workers)

  def test_so_they_are_of_a_file(self):
    folder = self.enter_context(tempfile.TemporaryDirectory())
    path = pathlib.Path(folder, 'a graph, in a file.csv')
    path.write_text('0,1\n1,2\n')
    found = graph_report.read(f"file(path='{path}'),ring")
    self.assertEqual([topology.workers for _, topology in found], [3, 3])
    np.testing.assert_array_equal(
      found[0][1].links[0], decopt.chain(3).links[0]
    )

  @parameterized.parameters(
    ('rign', "there is no topology 'rign'; did you mean 'ring'"),
    ('ring(foo=1)', "'ring' has no argument 'foo'; it takes directed"),
    ('two_level(machins=4)', "did you mean 'machines'"),
    ('file', "'file' needs the argument 'path': add path=..., in brackets"),
    ('file(path=none.csv)', 'none.csv'),
    ('file(path=3)', 'path is 3'),
    ('torus(rows=3)', '3 rows and 5 columns has 15 workers, not 16'),
    ('torus(rows=a)', "rows is 'a', not a number"),
    ('random_regular(degree=40)', 'random_regular needs'),
    ('alternate(of=(ring,sta))', "did you mean 'star'"),
    ('ring(weights=metroplis)', "did you mean 'metropolis'"),
    ('ring(weights=lazy(kep=0.2))', "no argument 'kep'; did you mean 'keep'"),
    ('exponential(weights=metropolis)', 'weights: metropolis needs'),
    ('ring,', 'a name is missing (character 6'),
    ('torus(2,8)', "'2' is no argument=value (character 7"),
    ('torus(rows=2', "'(' is not closed (character 6"),
    ('', 'a name is missing'),
  )
  def test_mistakes_are_one_line_without_fields_of_a_config(self, text, advice):
    with self.assertRaises(errors.UserError) as caught:
      graph_report.read(text)
    self.assertIn(advice, str(caught.exception))
    self.assertNotIn('config', str(caught.exception))
    self.assertNotIn('\n', str(caught.exception))

  @parameterized.parameters(
    ('hypercube', 6, 'a power of two'),
    ('davis_social', 6, '32'),
    ('random_regular', 5, 'an even number'),
  )
  def test_a_wrong_number_of_workers_is_one_line(self, text, workers, advice):
    with self.assertRaisesRegex(errors.UserError, advice):
      graph_report.read(text, workers)


class ShowTest(parameterized.TestCase):
  def shown(self, text, width=120, message_bytes=4):
    named = graph_report.read(text, 16)
    reports = [topology.report(message_bytes) for _, topology in named]
    console = rich_console.Console(
      file=io.StringIO(), force_terminal=True, width=width, color_system=None
    )
    graph_report.show(named, reports, message_bytes, console)
    return console.file.getvalue()

  def test_one_topology_is_a_whole_report(self):
    report = decopt.ring(16).report(message_bytes=100)
    self.assertEqual(self.shown('ring', message_bytes=100), f'{report}\n')

  @parameterized.parameters(80, 120, 200)
  def test_several_are_a_table_with_a_row_each(self, width):
    shown = self.shown('ring,torus,one_peer_exponential', width)
    self.assertIn('16 workers, messages of 4 B', shown)
    for cells in (
      ['ring', '0.05075', '133', '8.53', '2', '2', '8 B', '8', 'never'],
      ['torus', '0.4', '14', '13.8', '4', '4', '16 B', '4', 'never'],
    ):
      [row] = [x for x in shown.split('\n') if x.startswith(f'{cells[0]} ')]
      self.assertEqual(row.split(), ' '.join(cells).split())
    self.assertLessEqual(max(map(len, shown.split('\n'))), width)

  def test_long_names_are_broken_and_not_cut(self):
    name = 'two_level(machines=4,between=one_peer_exponential)'
    shown = self.shown(f'ring,{name}', width=80)
    first = [line.split(' ')[0] for line in shown.split('\n')]
    self.assertIn(name, ''.join(first))

  def test_brackets_of_a_name_are_no_markup(self):
    self.assertIn('of=[ring]', self.shown('ring,alternate(of=[ring])'))


class BinaryTest(parameterized.TestCase):
  """Processes run side by side, because each takes seconds to start."""

  def setUp(self):
    super().setUp()
    self.folder = pathlib.Path(
      self.enter_context(tempfile.TemporaryDirectory())
    )

  def test_shows_numbers_and_a_picture(self):
    one, two = self.folder / 'one.png', self.folder / 'two.png'
    two.write_text('old')
    processes = [
      small.start(command('--workers=8', '--parameters=25', f'--output={one}')),
      small.start(
        command(
          '--topology=ring,random_out_degree(degree=3)',
          '--workers=9',
          '--weights=lazy',
          '--rounds=5',
          '--seed=3',
          f'--output={two}',
        )
      ),
      small.start(command('--list')),
    ]
    finished = [small.finish(process) for process in processes]
    for code, _, shown in finished:
      self.assertEqual((code, shown), (0, ''))
    self.assertIn(str(decopt.ring(8).report(message_bytes=100)), finished[0][1])
    self.assertIn(f'drawn in {one}', finished[0][1])
    self.assertIn('random_out_degree(degree=3), lazy', finished[1][1])
    for path in (one, two):
      self.assertEqual(path.read_bytes()[:8], b'\x89PNG\r\n\x1a\n')
    self.assertLen(list(self.folder.iterdir()), 2)  # nothing is left half done
    for name in ('watts_strogatz', 'fastest_mixing'):
      self.assertIn(f'\n  {name} ', finished[2][1])

  def test_mistakes_are_one_line_and_write_nothing(self):
    taken = self.folder / 'taken.png'
    taken.mkdir()
    output = f'--output={self.folder / "a.png"}'
    cases = {
      "did you mean 'ring'": ['--topology=rign', output],
      "'(' is not closed": ['--topology=torus(rows=2', output],
      'a power of two': ['--topology=hypercube', '--workers=6', output],
      '--workers=0': ['--workers=0', output],
      'Did you mean: workers': ['--wokers=8', output],
      'both say how large': ['--parameters=2', '--message_bytes=2', output],
      "unexpected argument 'star'": ['--topology=ring,', 'star', output],
      'a picture is a .png': [f'--output={self.folder / "a.pdf"}'],
      'it is a directory': [f'--output={taken}'],
      'there is no directory': [f'--output={self.folder / "no" / "a.png"}'],
    }
    for group in (list(cases)[:5], list(cases)[5:]):
      processes = {text: small.start(command(*cases[text])) for text in group}
      for text, process in processes.items():
        code, output, shown = small.finish(process)
        self.assertEqual((code, output), (2, ''), shown)
        self.assertStartsWith(shown, 'error: ')
        self.assertIn(text, shown)
        self.assertEqual(shown.count('\n'), 1, shown)
    self.assertEqual(list(self.folder.iterdir()), [taken])

  def test_a_picture_that_cannot_be_written_is_one_line(self):
    path = self.folder / f'{"a" * 250}.png'  # too long for a partial file
    process = small.start(command('--workers=4', f'--output={path}'))
    code, output, shown = small.finish(process)
    self.assertEqual(code, 2)
    self.assertStartsWith(output, 'ring')
    self.assertStartsWith(shown, f'error: cannot write {path} (')
    self.assertEqual(shown.count('\n'), 1, shown)
    self.assertEmpty(list(self.folder.iterdir()))


if __name__ == '__main__':
  absltest.main()
