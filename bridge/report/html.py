"""The funnel as one HTML file: no script, no font, no image from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from jinja2 import Environment, PackageLoader

from bridge.planner.report import PruneReport
from bridge.report.comparison import Way, saving
from bridge.report.remedies import spelled
from bridge.report.text import human_bytes, human_millis


def page(*reports: PruneReport, ways: Sequence[Sequence[Way]] = ()) -> str:
    """One page over one or more reports; everything that came from a user is escaped.

    Args:
        ways: for each report, in the same order, how the query did when read in several ways.
    """
    environment = Environment(autoescape=True, loader=PackageLoader("bridge.report", "."))
    environment.filters |= {
        "size": human_bytes,
        "millis": human_millis,
        "saving": saving,
        "spelled": spelled,
    }
    return environment.get_template("explain.html.j2").render(reports=reports, ways=ways)
