"""Calc: mend a function that one wrong expression has broken."""
