"""Entries for other programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from tally.entries import Entry
from tally.money import format_amount


def to_csv(entries: Iterable[Entry]) -> str:
    """CSV with a header; amounts without commas, so that spreadsheets read them."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["day", "category", "amount", "note"])
    for entry in entries:
        amount = format_amount(entry.cents).replace(",", "")
        writer.writerow([entry.day.isoformat(), entry.category, amount, entry.note])
    return out.getvalue()
