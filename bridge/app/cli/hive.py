"""``skipbridge hive``: the jar that lets Hive skip files."""

from __future__ import annotations

from pathlib import Path

import click

from bridge.app.cli.lazy import Verbs
from bridge.app.cli.output import emit, say


@click.group(cls=Verbs)
def hive() -> None:
    """Let Hive skip files: build the jar, which hooks plans.

    The hook alters no table. Without a planner, Hive reads every file.
    """


@hive.command("jar")
@click.option("--hive-version", default="4.0.1", show_default=True, help="Version of Hive.")
@click.option(
    "--to",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Directory for the jar. [default: the current one]",
)
def jar(hive_version: str, to: Path) -> None:
    """Build the hooks' jar; print its path, and the configuration that hooks plans.

    Its only dependency is Hive itself. Copy it to lib/ of HiveServer2, add the printed properties
    to hive-site.xml, and restart HiveServer2. Tables with an index then skip files; none is
    altered. Tasks in containers get the jar from HiveServer2.

    To take it back, remove the class from hive.exec.pre.hooks first, then the jar: without the
    class, Hive fails every query.
    """
    from bridge.hive.jar import PLAN_HOOK, build_jar

    made = build_jar(hive_version, to.absolute(), say)
    emit(str(made))
    say("copy it to lib/ of HiveServer2, add this to its hive-site.xml, and restart it:")
    for name, value in (
        ("hive.exec.pre.hooks", PLAN_HOOK),
        ("skipbridge.planner", "127.0.0.1:9527"),
        ("hive.optimize.index.filter", "true"),
    ):
        say(f"  <property><name>{name}</name><value>{value}</value></property>")
    say("hive.exec.pre.hooks is a list: keep the classes that it names, with a comma between them")


@hive.command("versions")
def versions() -> None:
    """Versions of Hive that the jar can be built for."""
    from bridge.hive.jar import hive_versions

    for version in hive_versions():
        emit(version)
