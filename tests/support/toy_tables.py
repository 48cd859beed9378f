"""Tables of the toy table format in tests/plugins/toy_tables, and what their versions hold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bridge.table.model import CatalogTable, TableName
from tests.support.lake import NAME, Lake

PLUGIN = Path(__file__).parents[1] / "plugins" / "toy_tables"


@dataclass
class VersionedLake(Lake):
    """A table whose file set is what its newest manifest says, whatever else lies there."""

    committed: dict[int, dict[str, Any]] = field(default_factory=dict)

    def table(self, name: TableName = NAME, age: float = 0.0) -> CatalogTable:
        return replace(super().table(name, age), table_format="manifest")

    def commit(
        self,
        slices: dict[str, Sequence[dict[str, Any]]],
        *,
        where: str = "",
        committed_at: int = 0,
        written_in: str = "",
    ) -> int:
        """Adds a version. Args: slices: by partition name; paths are relative to the table."""
        number = max(self.committed, default=0) + 1
        manifest = {
            "committed_at": committed_at,
            "filter": where,
            "written_in": written_in,
            "partitions": [{"name": name, "slices": list(held)} for name, held in slices.items()],
        }
        self.committed[number] = manifest
        folder = self.root / "t" / "_versions"
        folder.mkdir(exist_ok=True)
        (folder / f"{number}.json").write_text(json.dumps(manifest))
        return number
