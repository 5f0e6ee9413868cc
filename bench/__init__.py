"""Benchmarks, one a file, that anyone can run to believe the numbers. Import it as ``hudsim.bench``."""
