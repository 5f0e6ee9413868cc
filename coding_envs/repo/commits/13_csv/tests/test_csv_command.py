from __future__ import annotations

from tally.cli import main


def test_the_command_line_writes_csv(tmp_path):
    file = tmp_path / "entries.txt"
    file.write_text("2024-03-01 food 3.5 bread\n")
    try:
        code = main([str(file), "--csv"])
    except SystemExit as left:
        code = left.code
    assert code == 0
