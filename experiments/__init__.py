"""Binaries of decopt and what only they need: workloads, runs, benchmarks."""
