"""Tally: where the money goes."""
