"""What is written about the library is true: every example runs."""

import contextlib
import doctest
import importlib
import inspect
import io
import pathlib
import pkgutil
import re
import subprocess
import sys
import types

import jax
import jax.numpy as jnp
import optax
from absl.testing import absltest
from absl.testing import parameterized

import decopt
import experiments

ROOT = pathlib.Path(__file__).parents[1]
# Binaries define flags when they are imported, which can be done once.
BINARIES = (
  'experiments.bench.__main__',
  'experiments.topology',
  'experiments.train',
)
MODULES = [
  module.name
  for package in (decopt, experiments)
  for module in pkgutil.walk_packages(package.__path__, f'{package.__name__}.')
  if not module.ispkg and module.name not in BINARIES
]
PUBLIC = {
  name: value
  for name, value in vars(decopt).items()
  if not name.startswith('_') and not isinstance(value, types.ModuleType)
}
FUNCTIONS = {
  name: value for name, value in PUBLIC.items() if inspect.isfunction(value)
}
FACTORIES = {
  name: function
  for name, function in FUNCTIONS.items()
  if inspect.signature(function).return_annotation
  in (decopt.Operator, optax.GradientTransformationExtraArgs, decopt.Topology)
}


def _section(documentation: str, title: str) -> str:
  """The indented text under a title of a docstring, or nothing."""
  match = re.search(rf'^{title}:\n((?: +.*\n|\n)+)', documentation + '\n', re.M)
  return match[1] if match else ''


def _blocks(path: pathlib.Path) -> list[str]:
  return re.findall(r'^```python\n(.*?)^```', path.read_text(), re.M | re.S)


class ExamplesTest(parameterized.TestCase):
  @parameterized.parameters(*MODULES)
  def test_examples_of_docstrings_run(self, name):
    module = importlib.import_module(name)
    names = {'decopt': decopt, 'jax': jax, 'jnp': jnp, 'optax': optax}
    runner = doctest.DocTestRunner(verbose=False)
    output = []
    for test in doctest.DocTestFinder().find(module, extraglobs=names):
      runner.run(test, out=output.append)
    self.assertEqual(runner.summarize(verbose=False).failed, 0, ''.join(output))

  @parameterized.parameters('README.md', 'WORKSPACE.md')
  def test_code_blocks_run_one_after_the_other(self, name):
    namespace = {'__name__': '__main__'}
    for block in _blocks(ROOT / name):
      exec(compile(block, name, 'exec'), namespace)

  def test_the_readme_shows_what_its_code_prints(self):
    text = (ROOT / 'README.md').read_text()
    block = r'((?:(?!```).*\n)+)```\n'
    shown = re.findall(rf'^```python\n{block}\n```\n{block}', text, re.M)
    self.assertNotEmpty(shown)
    for block, expected in shown:
      printed = io.StringIO()
      with contextlib.redirect_stdout(printed):
        exec(compile(block, 'README.md', 'exec'), {'__name__': '__main__'})
      same = doctest.OutputChecker().check_output(
        expected, printed.getvalue(), doctest.ELLIPSIS
      )
      self.assertTrue(same, printed.getvalue())

  def test_the_readme_has_a_quickstart(self):
    blocks = _blocks(ROOT / 'README.md')
    self.assertTrue(any('decopt.spmd' in block for block in blocks))


class DocstringsTest(parameterized.TestCase):
  @parameterized.parameters(*MODULES)
  def test_modules_say_what_they_are_for(self, name):
    self.assertNotEmpty(inspect.getdoc(importlib.import_module(name)))

  @parameterized.named_parameters(
    (f'_{name}', value)
    for name, value in PUBLIC.items()
    if getattr(value, '__module__', '').startswith('decopt')
  )
  def test_public_names_are_documented(self, value):
    self.assertNotEmpty(value.__doc__)

  @parameterized.named_parameters(
    (f'_{name}', function) for name, function in FUNCTIONS.items()
  )
  def test_arguments_are_explained(self, function):
    documentation = inspect.getdoc(function)
    if 'axis_name' in inspect.signature(function).parameters and (
      len(documentation.splitlines()) == 1
    ):
      return  # it has no argument but the name of the axis
    arguments = _section(documentation, 'Args')
    for name in inspect.signature(function).parameters:
      self.assertRegex(arguments, rf'(?m)^ +\*{{0,2}}{name}[:,]')

  @parameterized.named_parameters(
    (f'_{name}', function) for name, function in FACTORIES.items()
  )
  def test_factories_have_an_example(self, function):
    self.assertIn('>>> ', _section(inspect.getdoc(function), 'Example'))

  @parameterized.named_parameters(
    (f'_{name}', function)
    for name, function in FACTORIES.items()
    if 'topology' not in inspect.getmodule(function).__name__
    and 'graphs' not in inspect.getmodule(function).__name__
  )
  def test_operators_and_algorithms_have_their_equation(self, function):
    self.assertIn('.. math::', inspect.getdoc(function))


class ImportTest(parameterized.TestCase):
  def test_importing_the_library_is_light(self):
    program = (
      'import sys, jax, optax; before = set(sys.modules); import decopt;'
      'print(*{name.split(".")[0] for name in set(sys.modules) - before})'
    )
    result = subprocess.run(
      [sys.executable, '-c', program],
      cwd=ROOT,
      capture_output=True,
      text=True,
      check=True,
    )
    loaded = set(result.stdout.split())
    self.assertIn('decopt', loaded)
    heavy = {'networkx', 'flax', 'scipy', 'matplotlib', 'sklearn', 'orbax'}
    self.assertEmpty(loaded & heavy)


if __name__ == '__main__':
  absltest.main()
