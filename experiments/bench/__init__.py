"""How fast decopt is, held against programs written by hand without it.

`python -m experiments.bench core --json=FILE` times each case of a suite
against the best hand-written JAX for the same arithmetic, in one process and in
turns, and prints ratios of times.
"""
