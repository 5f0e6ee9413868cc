"""Environments whose work is text and code: one folder each. Import it as ``hudsim.coding_envs``."""
