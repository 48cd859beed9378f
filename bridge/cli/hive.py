"""``skipbridge hive``: hooks that let Hive read tables through skipbridge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bridge.cli.lazy import Verbs
from bridge.cli.output import PROBLEMS, emit, emit_json, progress, say, settings
from bridge.config import Config

_METASTORE = ("metastore.uri", "metastore.batch_cap", "metastore.parallelism")
_OUTPUT = click.option("--output", type=click.Choice(["text", "json"]), default="text")
_DRY_RUN = click.option("--dry-run", is_flag=True, help="Print the changes without making them.")


@click.group(cls=Verbs)
def hive() -> None:
    """Let Hive skip files: build the jar, which hooks plans; or hook single tables, and undo it.

    \b
    skipbridge hive jar                     build the jar; print the configuration that hooks plans
    skipbridge hive hook demo.flights       instead: alter one table to be read through the jar
    skipbridge hive unhook demo.flights     exactly as it was

    A hook of plans alters no table. Without a planner, Hive reads every file.
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
    from bridge.jobs.hive_jar import PLAN_HOOK, build_jar

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
    from bridge.jobs.hive_jar import hive_versions

    for version in hive_versions():
        emit(version)


@hive.command("hook")
@click.argument("name", metavar="DB.TABLE")
@_DRY_RUN
@_OUTPUT
@settings(*_METASTORE)
def hook(config: Config, name: str, dry_run: bool, output: str) -> None:
    """Let Hive read a table through skipbridge, by altering the table.

    A hook of plans (skipbridge hive jar) needs no altered table. This replaces the input format of
    the table and of all its partitions by a subclass, and records the former one. Nothing else
    changes: files, statistics, writes. Partitions that Hive adds later are hooked from the start.
    If interrupted, run it again.

    The jar must be on Hive's class path first (skipbridge hive jar): without it, queries of the
    table fail. Trino's stock hive connector refuses hooked tables; skipbridge's own reads them.
    """
    from bridge.jobs.hive import hook_table

    def warn() -> None:
        say(
            f"from now on Trino's stock hive connector refuses {name}, and Hive without the jar "
            f"fails on it; skipbridge hive unhook {name} undoes it"
        )

    with progress(f"hooking {name}") as tick:
        report = hook_table(config, name, dry_run=dry_run, progress=tick, before_change=warn)
    _show(report, output)
    _leave(report)


@hive.command("unhook")
@click.argument("name", metavar="DB.TABLE")
@_DRY_RUN
@_OUTPUT
@settings(*_METASTORE)
def unhook(config: Config, name: str, dry_run: bool, output: str) -> None:
    """Restore the former input formats of a table and its partitions.

    If interrupted, run it again. Remove the jar only when no table is hooked any more.
    """
    from bridge.jobs.hive import unhook_table

    with progress(f"unhooking {name}") as tick:
        report = unhook_table(config, name, dry_run=dry_run, progress=tick)
    _show(report, output)
    _leave(report)


@hive.command("ddl")
@click.argument("name", metavar="DB.TABLE")
@click.option("--undo", is_flag=True, help="Print the statements of `unhook`.")
@settings(*_METASTORE)
def ddl(config: Config, name: str, undo: bool) -> None:
    """Print the statements to do the same as `hook` or `unhook` by hand.

    \b
    skipbridge hive ddl demo.flights > hook.sql && beeline -u jdbc:hive2://... -f hook.sql
    """
    from bridge.jobs.hive_ddl import statements

    for statement in statements(config, name, undo=undo):
        emit(f"{statement};")


def _show(report: dict[str, Any], output: str) -> None:
    if output == "json":
        emit_json(report)
        return
    name, dry_run = report["table"], report["dry_run"]
    if not report["table_altered"] and not report["altered"]:
        state = "hooked" if report["action"] == "hook" else "not hooked"
        emit(f"{name} is {state}: nothing to do")
    else:
        done = f"{'would ' if dry_run else ''}{report['action']}{'' if dry_run else 'ed'}"
        of = f"{report['altered']} of {report['partitions']} partitions"
        parts = ["the table"] if report["table_altered"] else []
        parts += [of] if report["partitioned"] else []
        emit(f"{done} {name}: {' and '.join(parts)}")
        formats = report["input_format"]
        if report["table_altered"] and formats["from"] != formats["to"]:
            emit(f"  input format {formats['from']}\n            -> {formats['to']}")
    for left in report["left"]:
        emit(
            f"  left as they are: {left['partitions']} partitions, {left['reason']}, "
            f"such as {', '.join(left['such_as'])}"
        )
    if report["action"] == "hook" and not dry_run and report["table_altered"]:
        say("Hive now needs the jar on its class path; check: skipbridge doctor --hive HOST:PORT")


def _leave(report: dict[str, Any]) -> None:
    """Ends the process with status 3 if partitions were left as they are."""
    if report["left"]:
        raise SystemExit(PROBLEMS)
