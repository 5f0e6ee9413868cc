"""What runs inside a grading sandbox: the standard library and pytest alone, started by ``python -I -S``."""
