"""``drawn``: a document's picture, where matplotlib is installed."""

from __future__ import annotations

import io
from typing import Any

import cv2
import numpy as np
import pytest

from hudsim.bench.shared.document import Draw

__all__ = ["drawn"]


def drawn(draw: Draw, document: dict[str, Any]) -> int:
    """How many colours it shows: lines are drawn in several, an empty picture has two."""
    pytest.importorskip("matplotlib")
    file = io.BytesIO()
    draw(document).savefig(file, dpi=60)
    image = cv2.imdecode(np.frombuffer(file.getvalue(), np.uint8), cv2.IMREAD_COLOR)
    assert image is not None
    return len(np.unique(image.reshape(-1, 3), axis=0))
