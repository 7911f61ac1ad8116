"""Workloads: real data without a download, and the models that learn from it.

`WORKLOADS` is the list; `make` builds one from the `workload` part of a config.
Importing this package is cheap: flax and the data are loaded when a workload is
built.

To add a workload, write a factory whose keyword arguments, with defaults, are
its config fields and which returns a `Workload`, and give it a line here.
"""

import inspect
from collections.abc import Mapping
from typing import Any

from experiments.workloads import base
from experiments.workloads import digits
from experiments.workloads import text

Workload = base.Workload

WORKLOADS = {
  'digits': (digits.digits, '1,797 handwritten digits; mlp or convnet'),
  'text': (text.text, "the standard library's source; byte-level transformer"),
}

#: Fields of a workload's config that are for `partition`, not for the factory.
RESERVED = ('partition', 'alpha', 'sizes')


def make(config: Mapping[str, Any]) -> Workload:
  """Builds the workload that a config names.

  Args:
    config: the `workload` part of a config: `name`, any of the factory's
      arguments, and the fields in `RESERVED`, which are ignored here.

  Returns:
    The workload.

  Raises:
    ValueError: if the workload or a field is unknown, with the name that was
      meant, or if a field's value is refused.

  Example:
    >>> make({'name': 'digits', 'model': 'convnet'}).examples
    1437
  """
  options = dict(config.items())
  if 'name' not in options:
    raise ValueError(
      f'workload has no name; give one of {", ".join(sorted(WORKLOADS))}'
    )
  name = options.pop('name')
  base.check_name('workload', name, WORKLOADS)
  factory, _ = WORKLOADS[name]
  options = {k: v for k, v in options.items() if k not in RESERVED}
  for field in options:
    base.check_name(
      f'{name} field', field, inspect.signature(factory).parameters
    )
  return factory(**options)
