"""The bundled policies: one model a file. Import it as ``hudsim.policies``."""
