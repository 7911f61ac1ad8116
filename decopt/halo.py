"""What crosses devices when several workers share one: the halo exchange.

With V workers on each of D devices, a mixing step needs on each device the
parameters of its own workers and of those neighbours that live elsewhere, the
halo. The plan, made on the host from one round of weights, says which rows a
device sends in which permutation of the devices, and how each worker sums what
its device then holds. A row goes to another device once, however many workers
there read it.
"""

import dataclasses
import functools
import itertools

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class Shipment:
  """Rows that travel together in one permutation of the devices.

  Attributes:
    pairs: (sending device, receiving device); each at most once.
    rows: [devices, rows] local indices of the workers a device sends.
  """

  pairs: tuple[tuple[int, int], ...]
  rows: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Plan:
  """One round of mixing on a packed mesh.

  After the shipments a device holds the rows of its own workers, followed by
  the received ones in the order of the shipments.

  Attributes:
    shipments: what crosses devices.
    sources: [devices, local, terms] rows that a worker sums.
    weights: [devices, local, terms] their weights; 0 pads.
    dense: [devices, local, rows] the same as a matrix.
    reads: [devices, local, rows] which rows a worker sums.
    origins: [devices, rows] the worker whose row it is; of rows that a device
      receives from nobody, any.
  """

  shipments: tuple[Shipment, ...]
  sources: np.ndarray
  weights: np.ndarray
  dense: np.ndarray
  reads: np.ndarray
  origins: np.ndarray


@functools.lru_cache(maxsize=512)
def plan(
  topology, round_index: int, local: int, own: bool | None = None
) -> Plan:
  """Plans one round of ``topology`` with ``local`` workers on each device.

  Args:
    topology: `decopt.Topology`; its workers are ``devices * local``.
    round_index: which round of the period.
    local: workers on each device, numbered device by device.
    own: whether a worker sums its own row; by default if it has a weight.
  """
  weights = topology.weights[round_index]
  links = weights > 0
  if own is not None:
    np.fill_diagonal(links, own)
  devices = len(weights) // local
  shipments = _shipments(weights, devices, local)
  # place[device][worker]: where the row of a worker lies on a device.
  place = [
    {device * local + row: row for row in range(local)}
    for device in range(devices)
  ]
  held = local
  for shipment in shipments:
    for sender, receiver in shipment.pairs:
      for k, row in enumerate(shipment.rows[sender]):
        place[receiver][sender * local + int(row)] = held + k
    held += shipment.rows.shape[1]
  origins = np.zeros((devices, held), np.int32)
  for device, rows in enumerate(place):
    origins[device, list(rows.values())] = list(rows)
  dense = np.zeros((devices, local, held))
  reads = np.zeros(dense.shape, bool)
  for i, j in zip(*np.nonzero(links), strict=True):
    device, row = divmod(int(i), local)
    position = device, row, place[device][int(j)]
    dense[position], reads[position] = weights[i, j], True
  sources, terms = _terms(dense, reads)
  return Plan(shipments, sources, terms, dense, reads, origins)


def _shipments(weights, devices, local) -> tuple[Shipment, ...]:
  """Decomposes the rows that cross devices into permutations of devices."""
  shipments = []
  blocks = weights.reshape(devices, local, devices, local).any(axis=1)
  for shift in range(1, devices):
    # needed[sender]: rows that device sender + shift reads.
    needed = [
      np.flatnonzero(blocks[(sender + shift) % devices, sender])
      for sender in range(devices)
    ]
    # One permutation carries equally many rows on all its pairs, so levels
    # with the same pairs travel together and no row is sent for nothing.
    counts = [len(rows) for rows in needed]
    levels = sorted({0, *counts})
    for low, high in itertools.pairwise(levels):
      senders = [s for s in range(devices) if counts[s] >= high]
      rows = np.zeros((devices, high - low), np.int32)
      for sender in senders:
        rows[sender] = needed[sender][low:high]
      pairs = tuple((s, (s + shift) % devices) for s in senders)
      shipments.append(Shipment(pairs, rows))
  return tuple(shipments)


def _terms(dense, reads) -> tuple[np.ndarray, np.ndarray]:
  """Lists the entries of each row of ``dense`` that are read, and pads them."""
  count = int(reads.sum(axis=-1).max())
  sources = np.argsort(~reads, axis=-1, kind='stable')[..., :count]
  weights = np.take_along_axis(dense, sources, axis=-1)
  return sources.astype(np.int32), weights
