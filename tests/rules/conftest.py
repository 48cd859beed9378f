"""Tables of other suites."""

from __future__ import annotations

import sys
from pathlib import Path

for folder in ("behaviour", "laws", "unit/index"):
    sys.path.insert(0, str(Path(__file__).parents[1] / folder))
