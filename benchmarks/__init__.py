"""Benchmarks: ours against public peers, on generated data, alternating in one process."""
