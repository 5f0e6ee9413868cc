"""Repo: change a small repository with a history, as its issues ask."""
