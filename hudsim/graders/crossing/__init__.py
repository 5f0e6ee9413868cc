"""Hidden tests in one process, the solution in another: ``import calc`` over there, and only values come back."""
