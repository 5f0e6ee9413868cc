"""``python -m tally``."""

from tally.cli import main

raise SystemExit(main())
