"""Asks, for a writer, whether files of a table wait in a clustering plan."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.clustering.timeline import Timeline
from bridge.clustering.writers import PendingGroup, check_write
from bridge.indexing.table import open_indexed_table
from bridge.kernel.config import Config
from bridge.runtime.compose import absolute_location
from bridge.storage.uri import canonical


def check_table_write(
    config: Config, table: str, files: Sequence[str], strategy: str
) -> list[PendingGroup]:
    """See `bridge.clustering.writers.check_write`.

    Args:
        files: paths or URIs.
    """
    with open_indexed_table(config, table) as (storage, _, _, store):
        uris = {canonical(absolute_location(file)) for file in files}
        return check_write(Timeline(storage, store.root), store, uris, strategy)
