"""The report as text, JSON and HTML."""

from __future__ import annotations

import json
import os
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from bridge.app.cli.main import cli
from bridge.planner.reports.comparison import Way, comparison, describe_saving
from bridge.planner.reports.html import page
from bridge.planner.reports.report import IndexNotUsed, PruneReport, Remedy, SplitTotals, Stage
from bridge.planner.reports.text import funnel, human_bytes, human_millis

EVIL = "<script>alert('x')</script>&\"{{ 7 * 7 }}"


def report(text: str = "x > 5", paths: pa.Array | None = None) -> PruneReport:
    return PruneReport(
        table=f"db.{text}",
        engine="trino",
        generation=41,
        freshness="live",
        predicate=text,
        dropped=(text,),
        stages=(
            Stage("partitions", "values", 730, 31, 0, 2.0, (text,)),
            Stage("files", "listing", 0, 0, 0, 12_345.0),
            Stage("files", "minmax", 9214, 1102, 49 << 30, 6.0, ("a", "b")),
        ),
        files_total=9214,
        files_kept=1102,
        splits=SplitTotals(64, 1102, 61.2, 49 << 30, 1.0),
        not_used=(IndexNotUsed(text, "STALE", text, Remedy(text=text)),),
        complete=True,
        paths=paths,
    )


class Tags(HTMLParser):
    """Names of all elements, and all text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_what_users_wrote_stays_text_in_the_page() -> None:
    many = pa.array([f"file:///{EVIL}"] * 1001, pa.large_string())
    html = page(report(EVIL, many), report())
    seen = Tags(html)
    assert "script" not in seen.tags
    assert EVIL in seen.text and f"file:///{EVIL}" in seen.text
    assert "the first 1,000 are shown" in seen.text
    assert "http" not in html.replace("charset", ""), "nothing comes from elsewhere"


def test_every_report_is_on_the_page() -> None:
    html = page(*(report(f"x > {i}") for i in range(4)))
    assert [f"x &gt; {i}" in html for i in range(4)] == [True] * 4
    assert "9,214" in html and "49.0 GiB" in html


def test_a_notebook_shows_the_funnel() -> None:
    shown = report(EVIL)._repr_html_()
    assert "9,214" in shown and "script" not in Tags(shown).tags


def test_the_funnel_is_aligned_and_names_what_was_not_used() -> None:
    lines = funnel(report()).splitlines()
    assert lines[0] == "db.x > 5 @ generation 41   x > 5"
    assert "dropped: x > 5" in lines[1]
    arrows = {line.index(" -> ") for line in lines[2:5]}
    assert len({line.index("  ", line.index(" -> ")) for line in lines[2:5]}) == 1, arrows
    assert "95.8 %" in lines[2] and "12.3 s" in lines[3] and "49.0 GiB" in lines[4]
    assert lines[-1] == "not used: x > 5  STALE, x > 5 -> x > 5"


@pytest.mark.parametrize(
    ("size", "text"),
    [(-1, "-"), (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (150 << 20, "150 MiB")],
)
def test_sizes(size: int, text: str) -> None:
    assert human_bytes(size) == text


def test_times() -> None:
    assert [human_millis(m) for m in (0.04, 9.96, 99.6, 12_000)] == [
        "0.0 ms",
        "10.0 ms",
        "100 ms",
        "12.0 s",
    ]


def test_json_has_what_is_promised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKIPBRIDGE_CACHE", str(tmp_path / "cache"))
    for i in range(4):
        path = tmp_path / "t" / "k=1" / f"{i}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"x": [i], "name": ["a"]}), path)
        os.utime(path, (1e9, 1e9))
    table = str(tmp_path / "t")
    run = CliRunner().invoke
    assert run(cli, ["index", "build", table, "--local"]).exit_code == 0
    where = "x > 1 AND g(name) = 'A'"
    done = run(cli, ["explain", table, where, "--output", "json", "--files"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    promised = "table generation freshness predicate dropped stages files splits not_used"
    assert set(promised.split()) <= set(found)
    assert (found["generation"], found["freshness"]) == (1, "live")
    assert found["dropped"] == ["G(name) = 'A'"]
    assert [(s["name"], s["index"]) for s in found["stages"]] == [
        ("partitions", "values"),
        ("files", "listing"),
        ("files", "minmax"),
    ]
    for stage in found["stages"]:
        assert {"name", "index", "total", "kept", "bytes", "millis"} <= set(stage)
    files = found["files"]
    assert (files["total"], files["kept"]) == (4, 2)
    assert files["paths"] == [f"file://{tmp_path}/t/k=1/{i}.parquet" for i in (2, 3)]
    assert set(found["splits"]) >= {"count", "weight", "bytes"}
    (tmp_path / "t" / "k=1" / "4.parquet").write_bytes(
        (tmp_path / "t" / "k=1" / "0.parquet").read_bytes()
    )
    found = json.loads(run(cli, ["explain", table, where, "--output", "json"]).stdout)
    assert "paths" not in found["files"]
    (stale,) = found["not_used"]
    assert {"index", "reason", "remedy"} <= set(stale) and stale["reason"] == "STALE"
    assert stale["remedy"] == f"skipbridge index refresh {table}"


def test_ways_to_read_a_query_side_by_side() -> None:
    ways = (
        Way(EVIL, 38.4, 16, 117 << 10, 5),
        Way("nothing skipped, no partition either", 210.0, 5_000, 28 << 20, 41),
        Way("a split a file", 12_640.0, 428, 3 << 20, 428),
    )
    text = comparison(ways).splitlines()
    assert [line.split()[-1] for line in text[1:4]] == ["5", "41", "428"]
    assert text[0].split()[-3:] == ["data", "read*", "splits"] and "footers" in text[4]
    assert text[5] == (
        "beside a split a file: 412 of 428 files not opened, 2.9 MiB not read, 423 splits fewer"
    )
    html = page(report(), report(), ways=[ways, ways])
    assert html.count("<table") == 4 and EVIL not in html
    assert "12.6 s" in Tags(html).text and "412 of 428 files" in Tags(html).text
    assert text[4] in Tags(html).text
    assert page(report()).count("<table") == 1
    # Nothing was saved: nothing is claimed.
    same = Way("x", 0.0, 5, 7, 5)
    assert describe_saving([same, same]) == "beside x: 0 of 5 files not opened"
    assert "<table" in page(report(), ways=[[same, same]])
