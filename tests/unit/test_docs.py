"""The documentation holds together: pages that texts name exist, and references name everything."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = ("bridge", "docs", "docker", "hive_hooks", "tests", "trino_plugin_gen")
SUFFIXES = {".py", ".java", ".md", ".thrift", ".yaml", ".j2", ""}


def texts() -> list[Path]:
    found = [*ROOT.glob("*.md"), ROOT / "Makefile"]
    for place in PLACES:
        found += [p for p in (ROOT / place).rglob("*") if p.is_file() and p.suffix in SUFFIXES]
    return [p for p in found if "target" not in p.parts and "__pycache__" not in p.parts]


def test_every_page_that_a_text_names_exists() -> None:
    named = re.compile(r"\bdocs/[\w/-]+\.(?:md|py|svg)\b")
    for path in texts():
        for page in named.findall(path.read_text("utf-8", "replace")):
            assert (ROOT / page).exists(), (path, page)


@pytest.mark.parametrize("page", [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")], ids=str)
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    """Also those that lead out of docs/, which the site's strict build does not look at."""
    for target in re.findall(r"\]\(([^)#]+)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target
