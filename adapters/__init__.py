"""What stands between a world's features and a model's inputs: one adapter a file. Import it as ``hudsim.adapters``."""
