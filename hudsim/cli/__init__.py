"""The ``hudsim`` command: each file parses one command's words, calls one function below, and prints."""
