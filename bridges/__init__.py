"""The bundled worlds: one simulator a file. Import it as ``hudsim.bridges``."""
