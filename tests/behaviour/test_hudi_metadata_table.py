"""Metadata tables that Hudi wrote: they list what storage lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.storage.routed import open_storage
from bridge.storage.uri import canonical
from bridge.table.hudi.file_system_view import FileListing, FileSystemView
from bridge.table.hudi.metadata_table import Incomplete, read_file_listing
from tests.support.hudi_fixtures import HudiFixture, hudi_fixtures

WITH_ONE = [f for f in hudi_fixtures() if (f.path() / ".hoodie" / "metadata" / "files").exists()]


def in_storage(path: Path) -> FileListing:
    files: dict[str, list[tuple[str, int]]] = {}
    for marker in path.rglob(".hoodie_partition_metadata*"):
        if ".hoodie" in marker.relative_to(path).parts:
            continue
        partition = marker.parent.relative_to(path).as_posix()
        found = (f for f in marker.parent.iterdir() if f.is_file() and f != marker)
        files["" if partition == "." else partition] = [
            (f.name, f.stat().st_size) for f in found if not f.name.endswith(".crc")
        ]
    return FileListing.of(files)


def test_some_fixtures_have_one() -> None:
    assert len(WITH_ONE) >= 2


@pytest.mark.parametrize("fixture", WITH_ONE, ids=lambda f: f.id)
def test_slices_are_those_of_a_listing_of_storage(fixture: HudiFixture) -> None:
    view = FileSystemView.open(open_storage(), canonical(str(fixture.path())))
    listing = read_file_listing(open_storage(), view.config, view.timeline)
    assert not isinstance(listing, Incomplete), listing
    listed = in_storage(fixture.path())
    mine, other = view.slices(files=listing), view.slices(files=listed)
    assert mine.base_paths == other.base_paths
    assert mine.base_sizes.tolist() == other.base_sizes.tolist()
    assert mine.log_paths == other.log_paths
    assert mine.log_sizes.tolist() == other.log_sizes.tolist()
    assert len(mine.file_ids) > 0
    one = listing.partitions[0]
    some = read_file_listing(open_storage(), view.config, view.timeline, [one])
    assert not isinstance(some, Incomplete)
    assert some.partitions == (one,)
    assert some.names.to_pylist() == listing.names.to_pylist()[: listing.counts[0]]
