"""The documentation holds together: pages that texts name exist, and references name everything."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name

import click
import pytest

from bridge.app.cli.main import cli
from bridge.kernel.errors import all_errors

ROOT = Path(__file__).parents[2]
PLACES = ("bridge", "docs", "docker", "hive_hooks", "jvm_client", "tests", "trino_plugin_gen")
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
SUFFIXES = {".py", ".java", ".md", ".thrift", ".yaml", ".j2", ""}


def texts() -> list[Path]:
    found = [*ROOT.glob("*.md"), ROOT / "Makefile"]
    for place in PLACES:
        found += [p for p in (ROOT / place).rglob("*") if p.is_file() and p.suffix in SUFFIXES]
    return [p for p in found if "target" not in p.parts and "__pycache__" not in p.parts]


def test_every_page_that_a_text_names_exists() -> None:
    named = re.compile(r"\bdocs/[\w/-]+\.(?:md|py|svg)\b")
    for path in texts():
        for found in named.findall(path.read_text("utf-8", "replace")):
            assert (ROOT / found).exists(), (path, found)


def test_every_file_and_module_that_the_docs_name_exists() -> None:
    """`bridge/index/kinds/`, `tests/laws/test_kinds.py`, `bridge.kernel.errors.BridgeError`."""
    files = re.compile(rf"`((?:{'|'.join(PLACES)})/[\w./-]*[\w/])`")
    modules = re.compile(r"`(bridge(?:\.\w+)+)`")
    for path in PAGES:
        for found in files.findall(path.read_text()):
            assert (ROOT / found).exists(), (path, found)
        for found in modules.findall(path.read_text()):
            assert resolve_name(found), (path, found)


def test_every_place_on_the_code_map_exists() -> None:
    """`planner/file_pruner.py: keep` is a module below `bridge`, and a name that it defines."""
    text = page("concepts/code-map.md")
    rooms = "|".join(p.name for p in (ROOT / "bridge").iterdir() if p.is_dir())
    places = re.findall(rf"`((?:{rooms})/[\w./]+)(?:: (\w+))?`", text)
    assert len(places) > 25 and sum(bool(name) for _, name in places) > 5
    for path, name in places:
        assert (ROOT / "bridge" / path).exists(), path
        if name:
            source = (ROOT / "bridge" / path).read_text("utf-8")
            assert re.search(rf"^\s*(def|class) {name}\b", source, re.M), (path, name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    """Also those that lead out of docs/, which the site's strict build does not look at."""
    for target in re.findall(r"\]\(([^)#]+)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def test_settings_and_commands_are_those_of_the_code() -> None:
    """`make docs` writes both pages."""
    # In a process of its own: click remembers the help options of commands that ran here.
    script = "import json, runpy, sys; pages = runpy.run_path(sys.argv[1])['pages']()"
    script += "; print(json.dumps({str(path): text for path, text in pages.items()}))"
    generate = str(ROOT / "docs/reference/generate.py")
    done = subprocess.run([sys.executable, "-c", script, generate], capture_output=True, check=True)
    for path, text in json.loads(done.stdout).items():
        assert Path(path).read_text() == text, f"{path} is out of date: run `make docs`"


def test_every_error_is_told_with_its_category() -> None:
    for path in (ROOT / "bridge").rglob("*.py"):
        if re.search(r'^    code = "', path.read_text(), re.M):
            import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    words = {"EXTERNAL": "external", "INSUFFICIENT_RESOURCES": "resources"}
    words |= {"USER_ERROR": "user", "INTERNAL_ERROR": "internal"}
    ours = [e for e in all_errors().values() if e.__module__.startswith("bridge.")]
    known = {(e.code, words[e.category.value], "yes" if e.retryable else "no") for e in ours}
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (yes|no) \|", page("reference/errors.md"), re.M)
    assert set(rows) == known


@pytest.mark.parametrize(
    ("source", "pattern", "name"),
    [
        ("bridge/kernel/telemetry.py", r'"(skipbridge_\w+)"', "reference/metrics.md"),
        ("bridge/service/bridge.thrift", r"^  [\w<>]+ (\w+)\(", "reference/wire.md"),
        ("{trino}/BridgeConfig.java", r'String \w+ = "([a-z].+?)";', "reference/trino.md"),
        ("{trino}/BridgeSession.java", r'String \w+ = "(\w+)";', "reference/trino.md"),
        ("{trino}/BridgeErrorCode.java", r"^    ([A-Z_]+)\(\d", "reference/errors.md"),
        ("{hive}/Settings.java", r'"(skipbridge\.[\w.]+)"', "reference/hive.md"),
    ],
    ids=lambda value: Path(value).name if "/" in value else "",
)
def test_the_reference_names_everything(source: str, pattern: str, name: str) -> None:
    source = source.format(
        trino="trino_plugin_gen/template/src/main/java/io/skipbridge/trino",
        hive="hive_hooks/java/src/main/java/io/skipbridge/hive",
    )
    found = re.findall(pattern, (ROOT / source).read_text(), re.M)
    assert found
    assert [each for each in found if each not in page(name)] == []


def commands() -> list[tuple[str, str, list[str]]]:
    """Every call of ``skipbridge`` in a code block: page, line, words."""
    found = []
    for path in PAGES:
        if path.name == "commands.md":
            continue
        for block in re.findall(r"^```(?:sh|text)\n(.*?)^```", path.read_text(), re.M | re.S):
            for line in block.replace("\\\n", " ").splitlines():
                call = re.search(r"(?:^|\$ |\$\()skipbridge (.*?)\)?$", line)
                if call:
                    found.append((path.name, line, shlex.split(call[1], comments=True)))
    return found


@pytest.mark.parametrize(
    ("page", "line", "words"), commands(), ids=lambda part: part if isinstance(part, str) else "ok"
)
def test_every_command_that_the_docs_show_exists(page: str, line: str, words: list[str]) -> None:
    command: click.Command = cli
    context = click.Context(cli)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        word = words.pop(0)
        command = command.get_command(context, word) or pytest.fail(f"{page}: {line}: {word}")
    known = {option for each in command.get_params(context) for option in each.opts}
    known |= {option for each in command.get_params(context) for option in each.secondary_opts}
    assert {word for word in words if word.startswith("-")} <= known


def test_the_figures_of_the_readme_are_those_of_the_docs() -> None:
    told = page("figures.md") + page("concepts/cost-model.md")
    gains = (ROOT / "README.md").read_text().partition("## What it gains")[2]
    figures = re.findall(r"\| (\d[\d.]*) (?:s|ms|MB)\b", gains.partition("## What it cannot")[0])
    assert len(figures) > 10
    assert [figure for figure in figures if figure not in told] == []


@pytest.mark.parametrize(
    "about",
    [
        "how-to/clustering", "how-to/publishing", "how-to/indexes", "how-to/sync", "how-to/s3",
        "how-to/segments", "how-to/hudi", "how-to/iceberg-rest", "reference/trino",
    ],
)  # fmt: skip
def test_a_page_has_one_task(about: str) -> None:
    """At most 1,200 words each: what is longer is several pages."""
    pages = sorted((ROOT / "docs").glob(f"{about}*.md"))
    assert len(pages) > 1
    assert [p.name for p in pages if len(p.read_text("utf-8").split()) > 1200] == []
