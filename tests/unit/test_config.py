"""Settings: precedence, origins, and errors that name the nearest key."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.kernel.config import OPTIONS, load
from bridge.kernel.errors import InvalidConfiguration


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for option in OPTIONS:
        monkeypatch.delenv("SKIPBRIDGE_" + option.key.upper().replace(".", "_"), raising=False)
    path = tmp_path / "config.toml"
    path.write_text('[metastore]\nuri = "thrift://file:1"\ncache = 50\n')
    return path


def test_flag_over_environment_over_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load(file=file).text("metastore.uri") == "thrift://file:1"
    monkeypatch.setenv("SKIPBRIDGE_METASTORE_URI", "thrift://env:1")
    assert load(file=file).setting("metastore.uri").origin == "SKIPBRIDGE_METASTORE_URI"
    config = load({"metastore.uri": "thrift://flag:1"}, file)
    assert config.text("metastore.uri") == "thrift://flag:1"
    assert config.setting("metastore.uri").origin == "flag"
    assert config.integer("metastore.cache") == 50
    assert config.setting("metastore.timeout").origin == "default"


@pytest.mark.parametrize(
    ("text", "found", "hint"),
    [
        ("[metastore]\nurl = 'x'\n", "metastore.url", "metastore.uri"),
        ("[metastore]\ncache = 'many'\n", "many", "whole number"),
        ("[splits]\ntarget_bytes = '1 parsec'\n", "parsec", "128MiB"),
        ("uri = 'x'\n", "uri", "[metastore]"),
        ("[metastore\n", "cannot read", "TOML"),
        ("[storage]\nconnections = 0\n", "0", "at least 1"),
    ],
)
def test_bad_input(file: Path, text: str, found: str, hint: str) -> None:
    file.write_text(text)
    with pytest.raises(InvalidConfiguration) as error:
        load(file=file)
    assert found in error.value.message
    assert hint in error.value.hint


def test_missing_file_that_was_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="no such"):
        load(file=tmp_path / "absent.toml")


def test_units(file: Path) -> None:
    file.write_text("[splits]\ntarget_bytes = '1.5MiB'\n[metastore]\ntimeout = '250ms'\n")
    config = load(file=file)
    assert config.size("splits.target_bytes") == 1572864
    assert config.seconds("metastore.timeout") == 0.25
