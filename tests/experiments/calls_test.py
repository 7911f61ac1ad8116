"""Calls as text, and the character at which text is none."""

from absl.testing import absltest
from absl.testing import parameterized

from experiments import calls
from experiments import errors


class ParseTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('name', 'ring', [{'name': 'ring'}]),
    ('brackets', 'ring()', [{'name': 'ring'}]),
    (
      'numbers',
      'torus(rows=2, columns=8)',
      [{'name': 'torus', 'rows': 2, 'columns': 8}],
    ),
    (
      'values_of_python',
      'x(a=-1e-3,b=None,c=True,d=[1, 2],e="f, g")',
      [
        {
          'name': 'x',
          'a': -1e-3,
          'b': None,
          'c': True,
          'd': [1, 2],
          'e': 'f, g',
        }
      ],
    ),
    ('words', 'file(path=a/g.csv)', [{'name': 'file', 'path': 'a/g.csv'}]),
    (
      'calls_as_values',
      'alternate(of=(ring,torus(rows=2)))',
      [{'name': 'alternate', 'of': '(ring,torus(rows=2))'}],
    ),
    ('several', ' ring , star ', [{'name': 'ring'}, {'name': 'star'}]),
    ('a_tuple', '(ring, star,)', [{'name': 'ring'}, {'name': 'star'}]),
  )
  def test_text_becomes_sections(self, text, sections):
    self.assertEqual([call.section for call in calls.parse(text)], sections)

  def test_what_was_written_is_kept(self):
    found = calls.parse('ring, torus( rows = 2 )')
    self.assertEqual([x.text for x in found], ['ring', 'torus( rows = 2 )'])

  @parameterized.parameters(
    ('', 'a name is missing (character 1'),
    ('ring,', 'a name is missing (character 6'),
    ('ring,,star', 'a name is missing (character 6'),
    ('ring star', "'ring star' is no name(argument=value, ...) (character 6"),
    ('3', "'3' is no name(argument=value, ...) (character 1"),
    ('ring,torus(2,8)', "'2' is no argument=value (character 12"),
    ('torus(rows=)', "'rows=' is no argument=value (character 7"),
    ('torus(rows=2,)', 'an argument is missing (character 14'),
    ('torus(rows=2', "'(' is not closed (character 6"),
    ('torus(rows=(2)', "'(' is not closed (character 6"),
    ('torus)', "')' closes nothing (character 6"),
    ('torus(rows=2]', "']' closes nothing (character 13"),
    ("file(path='a.csv)", "''' is not closed (character 11"),
    ('torus(rows=2,rows=3)', "'rows' is given twice (character 14"),
    ('file(name=3)', "'name' is no argument (character 6"),
    (3, '3 is no name; write for example ring'),
  )
  def test_what_is_no_call_is_answered_with_its_place(self, text, problem):
    with self.assertRaises(errors.UserError) as caught:
      calls.parse(text)
    self.assertIn(problem, str(caught.exception))
    self.assertNotIn('\n', str(caught.exception))

  def test_values_are_data_and_never_run(self):
    [call] = calls.parse('file(path=__import__("os").getcwd())')
    self.assertEqual(call.arguments['path'], '__import__("os").getcwd()')

  def test_one_is_not_several(self):
    self.assertEqual(calls.parse_one('ring').name, 'ring')
    with self.assertRaisesRegex(errors.UserError, 'more than one'):
      calls.parse_one('ring,star')


if __name__ == '__main__':
  absltest.main()
