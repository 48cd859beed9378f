"""The funnel as one HTML file without scripts or external fonts and images."""

from __future__ import annotations

from collections.abc import Sequence

from jinja2 import Environment, PackageLoader

from bridge.planner.reports.comparison import FOOTNOTE, Way, describe_saving
from bridge.planner.reports.remedies import remedy_text
from bridge.planner.reports.report import PruneReport
from bridge.planner.reports.text import human_bytes, human_millis


def page(*reports: PruneReport, ways: Sequence[Sequence[Way]] = ()) -> str:
    """One page with one or more reports. All user input is escaped.

    Args:
        ways: for each report, in the same order, the compared ways to run the query.
    """
    environment = Environment(autoescape=True, loader=PackageLoader("bridge.planner.reports", "."))
    environment.filters |= {
        "size": human_bytes,
        "millis": human_millis,
        "saving": describe_saving,
        "spelled": remedy_text,
    }
    return environment.get_template("explain.html.j2").render(
        reports=reports, ways=ways, footnote=FOOTNOTE
    )
