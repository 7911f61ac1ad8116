"""Consecutive devices are linked, for grids of all shapes."""

import dataclasses
import itertools
import math

from absl.testing import absltest
from absl.testing import parameterized

from decopt import device_order

GRIDS = {
  'x'.join(map(str, sides)): sides
  for dimensions in (1, 2, 3)
  for sides in itertools.product(range(1, 5), repeat=dimensions)
}
OTHERS = {
  '7x5': (7, 5),
  '6x9': (6, 9),
  '3x5x7': (3, 5, 7),
  '2x3x2x3': (2, 3) * 2,
}


@dataclasses.dataclass(frozen=True)
class Chip:
  """What `decopt.device_order` reads of a device of a TPU."""

  id: int
  coords: tuple[int, ...]
  process_index: int = 0
  slice_index: int = 0
  core_on_chip: int = 0

  @property
  def place(self):
    return (*self.coords, self.core_on_chip)


@dataclasses.dataclass(frozen=True)
class Gpu:
  """A device that does not know where it is."""

  id: int
  process_index: int


def chips(sides, cores=1, **fields):
  """All devices of a grid, in the order of their coordinates."""
  places = itertools.product(*map(range, sides), range(cores))
  return [
    Chip(i, place[:-1], core_on_chip=place[-1], **fields)
    for i, place in enumerate(places)
  ]


def steps(first, second):
  """How far two places are apart, along each coordinate that differs."""
  return [abs(a - b) for a, b in zip(first, second, strict=True) if a != b]


def linked(first, second):
  return steps(first, second) == [1]


class GridRingTest(parameterized.TestCase):
  @parameterized.named_parameters(
    (f'_{name}', sides) for name, sides in {**GRIDS, **OTHERS}.items()
  )
  def test_visits_each_cell_once_one_step_at_a_time(self, sides):
    walk = device_order.grid_ring(sides)
    self.assertCountEqual(walk, itertools.product(*map(range, sides)))
    for first, second in itertools.pairwise(walk):
      self.assertTrue(linked(first, second), (first, second))

  @parameterized.named_parameters(
    (f'_{name}', sides) for name, sides in {**GRIDS, **OTHERS}.items()
  )
  def test_ends_where_it_began_if_any_walk_can(self, sides):
    walk = device_order.grid_ring(sides)
    long = [side for side in sides if side > 1]
    # Steps change the colour of a chess board: a closed walk is even.
    possible = math.prod(long) % 2 == 0 and (len(long) > 1 or long == [2])
    closed = possible or not long
    self.assertEqual(device_order.is_closed(sides), closed)
    if possible:
      self.assertTrue(linked(walk[0], walk[-1]))
    elif long:
      # Else at the other end of a line, where there may be a link around.
      (far,) = steps(walk[0], walk[-1])
      self.assertIn(far + 1, long)


class RingOrderTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('a_slice', (4, 4), 1),
    ('a_cube', (4, 4, 4), 1),
    ('a_tray', (2, 2, 1), 1),
    ('odd', (3, 5), 1),
    ('two_cores_on_a_chip', (4, 2, 1), 2),
    ('a_line_of_chips_with_two_cores', (4, 1, 1), 2),
  )
  def test_neighbours_in_a_ring_are_linked(self, sides, cores):
    devices = chips(sides, cores)
    ring = device_order.ring_order(reversed(devices))
    self.assertCountEqual(ring, devices)
    for first, second in itertools.pairwise(ring):
      self.assertTrue(linked(first.place, second.place))
    even = len(devices) % 2 == 0
    self.assertEqual(linked(ring[0].place, ring[-1].place), even)

  def test_a_part_of_a_grid_has_coordinates_of_its_own(self):
    devices = [d for d in chips((4, 4)) if min(d.coords) >= 2]
    ring = device_order.ring_order(devices)
    self.assertCountEqual(ring, devices)
    for first, second in zip(ring, [*ring[1:], ring[0]], strict=True):
      self.assertTrue(linked(first.place, second.place))

  def test_a_grid_with_a_hole_is_walked_around_it(self):
    devices = chips((3, 3))
    del devices[4]
    ring = device_order.ring_order(devices)
    self.assertCountEqual(ring, devices)
    jumps = sum(
      not linked(a.place, b.place) for a, b in itertools.pairwise(ring)
    )
    self.assertLessEqual(jumps, 1)

  def test_slices_stay_together(self):
    slices = [chips((2, 4), slice_index=k) for k in range(2)]
    mixed = [d for pair in zip(*slices, strict=True) for d in pair]
    ring = device_order.ring_order(mixed)
    self.assertEqual([d.slice_index for d in ring], [0] * 8 + [1] * 8)
    for half in (ring[:8], ring[8:]):
      self.assertEqual(half, device_order.ring_order(half))
      self.assertTrue(linked(half[0].place, half[-1].place))

  def test_without_coordinates_hosts_stay_together(self):
    devices = [Gpu(id=i, process_index=i % 2) for i in range(6)]
    ring = device_order.ring_order(devices)
    self.assertEqual([d.id for d in ring], [0, 2, 4, 1, 3, 5])

  def test_coordinates_that_do_not_tell_apart_are_no_grid(self):
    # As on GPUs, which number those of each process from 0.
    devices = [Chip(i, (0,), process_index=3 - i) for i in range(4)]
    ring = device_order.ring_order(devices)
    self.assertEqual([d.process_index for d in ring], [0, 1, 2, 3])


class MachineOrderTest(parameterized.TestCase):
  def test_devices_of_a_process_stay_together(self):
    # Hosts of 2 x 2 chips, as in a TPU slice.
    devices = [
      dataclasses.replace(
        d, process_index=d.coords[0] // 2 * 2 + d.coords[1] // 2
      )
      for d in chips((4, 4))
    ]
    ordered = device_order.machine_order(devices)
    self.assertCountEqual(ordered, devices)
    hosts = [ordered[i : i + 4] for i in range(0, 16, 4)]
    for host in hosts:
      self.assertLen({d.process_index for d in host}, 1)
      for first, second in zip(host, [*host[1:], host[0]], strict=True):
        self.assertTrue(linked(first.place, second.place))


class TorusOrderTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('as_it_is', (4, 4, 1), 1, 4, 4),
    ('turned', (2, 8, 1), 1, 8, 2),
    ('a_side_for_the_rows', (4, 4, 4), 1, 4, 16),
    ('a_side_for_the_columns', (4, 4, 4), 1, 16, 4),
    ('cores_are_a_side', (4, 4, 1), 2, 4, 8),
    ('one_row', (4, 2), 1, 1, 8),
    ('one_column', (4, 2), 1, 8, 1),
  )
  def test_neighbours_in_a_torus_are_linked(self, sides, cores, rows, columns):
    devices = chips(sides, cores)
    ordered = device_order.torus_order(devices, rows, columns)
    self.assertCountEqual(ordered, devices)
    at = {divmod(i, columns): d.place for i, d in enumerate(ordered)}
    for (row, column), place in at.items():
      for after in ((row + 1, column), (row, column + 1)):
        if after in at:
          self.assertTrue(linked(place, at[after]), (place, at[after]))

  def test_of_several_shares_it_takes_the_one_that_closes(self):
    # Rows of 4 may be a line or a square, which needs no link around.
    ordered = device_order.torus_order(chips((2, 2, 4, 2, 2)), 4, 16)
    self.assertTrue(linked(ordered[0].place, ordered[15].place))
    self.assertTrue(linked(ordered[0].place, ordered[48].place))

  def test_a_torus_that_does_not_fit_has_its_rows_along_a_ring(self):
    devices = chips((4, 4))
    self.assertEqual(
      device_order.torus_order(devices, 2, 8), device_order.ring_order(devices)
    )
    self.assertEqual(
      device_order.torus_order(devices[:-1], 3, 5),
      device_order.ring_order(devices[:-1]),
    )

  def test_slices_take_rows_in_turn(self):
    devices = [d for k in range(2) for d in chips((2, 4), slice_index=k)]
    ordered = device_order.torus_order(devices, 4, 4)
    self.assertEqual([d.slice_index for d in ordered], [0] * 8 + [1] * 8)
    for k in range(4):
      row = ordered[4 * k : 4 * k + 4]
      for first, second in itertools.pairwise(row):
        self.assertTrue(linked(first.place, second.place))
    # Rows that would be in two slices are not rows of either.
    self.assertEqual(
      device_order.torus_order(devices, 1, 16), device_order.ring_order(devices)
    )


if __name__ == '__main__':
  absltest.main()
