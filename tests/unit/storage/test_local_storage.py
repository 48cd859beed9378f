"""What only local files have: links, permissions, a full disk, durable writes."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from bridge.kernel.errors import InvalidUri, StorageFailure, StorageFull
from bridge.storage.local_disk.local import LocalStorage


def test_a_link_out_of_the_root_is_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_text("x")
    table = tmp_path / "t"
    table.mkdir()
    (table / "link").symlink_to(outside)
    with pytest.raises(InvalidUri, match="outside"):
        LocalStorage().list_all(f"file://{table}")


def test_a_link_within_the_root_is_followed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/f").write_text("x")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    listing = LocalStorage().list_all(f"file://{tmp_path}")
    assert listing.paths.to_pylist() == [f"file://{tmp_path}/a/f", f"file://{tmp_path}/b/f"]


def test_a_link_above_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/up").symlink_to(tmp_path / "a")
    with pytest.raises(InvalidUri, match="above itself"):
        LocalStorage().list_all(f"file://{tmp_path}")


def test_a_name_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    os.close(os.open(os.fsencode(tmp_path) + b"/\xff", os.O_CREAT))
    with pytest.raises(InvalidUri, match="UTF-8"):
        LocalStorage().list_all(f"file://{tmp_path}")


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for write in (LocalStorage().put, LocalStorage().put_if_absent):
        with pytest.raises(StorageFull, match="no space"):
            write(f"file://{tmp_path}/f", b"x")
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(StorageFailure, match="without hard links") as caught:
        LocalStorage().put_if_absent(f"file://{tmp_path}/f", b"x")
    assert "index.root" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_a_parent_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    with pytest.raises(StorageFailure):
        LocalStorage().put(f"file://{tmp_path}/f/g", b"x")
    assert LocalStorage().stat(f"file://{tmp_path}/f/g") is None


def test_listing_in_threads_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(50):
        (tmp_path / f"f{i}").write_text("x" * i)
    whole = LocalStorage().list_all(f"file://{tmp_path}")
    monkeypatch.setattr("bridge.storage.local_disk.local_listing._CHUNK", 10)
    parts = LocalStorage().list_all(f"file://{tmp_path}")
    assert parts.paths.equals(whole.paths)
    assert (parts.sizes == whole.sizes).all()
    assert (parts.modified == whole.modified).all()


def test_links_that_have_no_end_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_text("x")
    for n in range(3):
        (tmp_path / "a" / f"l{n}").symlink_to(tmp_path / "b")
        (tmp_path / "b" / f"l{n}").symlink_to(tmp_path / "a")
    with pytest.raises(InvalidUri, match="above itself"):
        LocalStorage().list_all(f"file://{tmp_path}")


def test_a_link_to_a_directory_whose_name_begins_alike(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "f").write_text("x")
    (tmp_path / "ab").mkdir()
    (tmp_path / "ab" / "link").symlink_to(tmp_path / "a")
    (tmp_path / "ab" / ".#lock").symlink_to("someone@elsewhere.123")
    (tmp_path / "ab" / ".#other").symlink_to("/nowhere/at/all")
    found = LocalStorage().list_all(f"file://{tmp_path}").paths.to_pylist()
    assert found == [f"file://{tmp_path}/a/f", f"file://{tmp_path}/ab/link/f"]
