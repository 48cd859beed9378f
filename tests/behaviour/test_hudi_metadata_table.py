"""Metadata tables that Hudi wrote: they list what storage lists."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bridge.storage.routed import open_storage
from bridge.storage.uri import canonical
from bridge.table.hudi.files.file_sets import file_set
from bridge.table.hudi.files.file_system_view import FileListing, FileSystemView
from bridge.table.hudi.files.metadata_table import Incomplete, read_file_listing
from tests.support.hudi_fixtures import HudiFixture, hudi_fixtures
from tests.tiers import examples

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


@pytest.mark.parametrize("fixture", WITH_ONE[:: examples(12, 6, 1)], ids=lambda f: f.id)
@pytest.mark.parametrize("seed", range(examples(2, 3, 10)))
def test_a_damaged_one_is_passed_over(
    fixture: HudiFixture, seed: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = fixture.unpack(tmp_path)
    view = FileSystemView.open(open_storage(), canonical(str(table)))
    whole = view.slices(files=file_set(open_storage(), view))
    luck = random.Random(seed)
    held = sorted(f for f in (table / ".hoodie/metadata/files").iterdir() if f.suffix != ".crc")
    for _ in range(10):
        file = luck.choice([f for f in held if f.stat().st_size > 200])
        content = file.read_bytes()
        bent = bytearray(content)
        bent[luck.randrange(len(bent))] ^= 1 << luck.randrange(8)
        file.write_bytes(bytes(bent))
        found = view.slices(files=file_set(open_storage(), view))
        assert found.base_paths == whole.base_paths
        assert found.log_paths == whole.log_paths
        file.write_bytes(content)
    # A bit may lie where nothing is read. Files that end early are read in any case.
    for file in held:
        file.write_bytes(file.read_bytes()[:150])
    caplog.clear()
    found = view.slices(files=file_set(open_storage(), view))
    assert any("metadata table cannot be read" in each for each in caplog.messages)
    assert found.base_paths == whole.base_paths
    assert found.log_paths == whole.log_paths
