"""The public surface: what `bridge` exports, how lightly, and that its page tells all of it."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import bridge


def test_every_public_name_is_there_and_has_a_docstring() -> None:
    for name in bridge.__all__:
        found = getattr(bridge, name)
        assert name == "__version__" or found.__doc__, name
    assert set(bridge.__all__) <= set(dir(bridge))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        bridge.nothing  # noqa: B018


@pytest.mark.parametrize("module", ["bridge", "bridge.app.cli.main"])
def test_importing_it_brings_no_heavy_library(module: str) -> None:
    code = (
        f"import sys, {module}; "
        "print(*{'pyarrow', 'numpy', 'sqlglot', 'thrift', 'obstore'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_settings_are_keywords_and_wrong_ones_are_told(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('[metastore]\nuri = "thrift://one:1"\n[planner]\nrecursive = true\n')
    with bridge.connect(file, metastore_uri="thrift://two:2") as session:
        assert session._config.text("metastore.uri") == "thrift://two:2"
        assert session._config.flag("planner.recursive")
    with pytest.raises(bridge.BridgeError, match="planner_recursive"):
        bridge.connect(planner_recursiv=True)
    with pytest.raises(bridge.BridgeError, match=r"from connect\(\)"):
        bridge.connect(service_port="many")
    with pytest.raises(bridge.BridgeError, match="metastore_uri is None"):
        bridge.connect(metastore_uri=None)  # type: ignore[arg-type]
    with pytest.raises(bridge.BridgeError, match="no such configuration file"):
        bridge.connect(tmp_path / "none.toml")


@pytest.mark.parametrize("name", ["a.b.c", "", ".t", "s."])
def test_a_name_that_is_no_table_is_refused_at_once(session: bridge.Session, name: str) -> None:
    with pytest.raises(bridge.BridgeError) as caught:
        session.table(name)
    assert caught.value.code == "INVALID_REQUEST"


def test_a_directory_that_is_not_there_is_refused_at_once(
    session: bridge.Session, tmp_path: Path
) -> None:
    (tmp_path / "flights").mkdir()
    with pytest.raises(bridge.BridgeError, match="flights") as caught:
        session.table(tmp_path / "flight")
    assert caught.value.code == "TABLE_NOT_FOUND"


def test_a_metastore_that_does_not_answer_is_told(tmp_path: Path) -> None:
    with bridge.connect(metastore_uri="thrift://127.0.0.1:1", metastore_timeout="1s") as session:
        for ask in (session.schemas, session.table("db.t").scan().files):
            with pytest.raises(bridge.BridgeError) as caught:
                ask()
            assert caught.value.code == "METASTORE_UNAVAILABLE"


def test_a_directory_has_no_sync(table: bridge.Table) -> None:
    with pytest.raises(bridge.BridgeError) as caught:
        table.sync()
    assert caught.value.code == "INVALID_REQUEST"


PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "python-api.md").read_text()


def test_the_page_has_a_chapter_for_every_name_and_names_every_member() -> None:
    chapters = set(re.findall(r"^## (\w+)$", PAGE, re.M))
    assert chapters == {name for name in bridge.__all__ if not name.startswith("_")}
    for name in chapters - {"connect", "ScanReport", "BridgeError"}:
        text = PAGE.split(f"\n## {name}\n")[1].split("\n## ")[0]
        found = getattr(bridge, name)
        public = getattr(found, "__all__", dir(found))  # of a module, or of a class
        members = {m for m in public if not m.startswith("_")}
        told = set(re.findall(r"`(\w+)[`(]", text))
        assert members <= told, (name, members - told)


def test_the_page_spells_every_signature_as_the_code_does() -> None:
    spelled = {
        match[1]: re.sub(r"\s+", " ", match[2])
        for match in re.finditer(r"^`(scan|sync|build|add)\(([^`]*)\)`", PAGE, re.M)
    }
    owners = {"scan": bridge.Table, "sync": bridge.Table}
    assert set(spelled) == {"scan", "sync", "build", "add"}
    for name, text in spelled.items():
        signature = inspect.signature(getattr(owners.get(name, bridge.TableIndex), name))
        wanted: list[str] = []
        for parameter in list(signature.parameters.values())[1:]:
            if parameter.kind is parameter.KEYWORD_ONLY and "*" not in wanted:
                wanted.append("*")
            default = parameter.default
            if parameter.kind is parameter.VAR_KEYWORD:
                wanted.append(f"**{parameter.name}")
            elif default is parameter.empty:
                wanted.append(parameter.name)
            else:
                shown = f'"{default}"' if isinstance(default, str) else repr(default)
                wanted.append(f"{parameter.name}={shown}")
        assert text == ", ".join(wanted), name
