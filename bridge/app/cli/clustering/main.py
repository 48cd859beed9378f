"""``skipbridge cluster``: rewrite small or unsorted files, so that indexes skip more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from bridge.app.cli.clustering.advice import advise
from bridge.app.cli.clustering.options import chosen_strategy, strategy_options
from bridge.app.cli.clustering.publish import (
    accept,
    check_publish,
    clean,
    exit_if_kept,
    originals,
    publish,
    revert,
    run_publish,
    show_left,
    show_published,
)
from bridge.app.cli.clustering.watch import (
    interruptible,
    print_report,
    total_line,
    watch_and_cluster,
    watch_options,
)
from bridge.app.cli.lazy import Verbs
from bridge.app.cli.output import PROBLEMS, emit, emit_json, progress, progress_bars, say, settings
from bridge.kernel.config import Config

_SETTINGS = ("metastore.uri", "index.root")
_HUDI = "hudi.spark"
_RUN_SETTINGS = (
    *_SETTINGS,
    "clustering.settled",
    "clustering.memory",
    "clustering.verify",
    "planner.predicate_log",
    "splits.open_cost",
    _HUDI,
)
_OUTPUT = click.option("--output", type=click.Choice(["text", "json"]), default="text")


@click.group(cls=Verbs)
def cluster() -> None:
    """Rewrite files of a table in another order, beside the old ones, without stopping writers.

    Trino and the Python API read the new files as soon as a plan is committed. Hive and engines
    without skipbridge go on reading the old ones until `publish`; `clean` deletes what is left.
    """


@cluster.command("schedule")
@click.argument("table")
@strategy_options
@_OUTPUT
@settings(*_SETTINGS, _HUDI)
def schedule(config: Config, table: str, output: str, **given: Any) -> None:
    """Save a plan of what is worth a rewrite, and print its instant.

    TABLE is schema.table, or a directory; its files are Parquet. The index is brought up to
    date first. No data is written. Nothing is printed if there is nothing to rewrite.

    \b
    skipbridge cluster schedule demo.flights --by carrier --by dep_delay
    skipbridge cluster schedule ./flights --target 256MiB --recent 7
    """
    made = _schedule(config, table, given)
    if made["instant"] is None:
        _say_nothing(table, made)
    if output == "json":
        emit_json(made)
    elif made["instant"] is not None:
        emit(made["instant"])


def _schedule(
    config: Config,
    table: str,
    given: dict[str, Any],
    *,
    dry: bool = False,
    local: bool = False,
) -> dict[str, Any]:
    from bridge.clustering.commands.run import schedule as plan

    strategy = chosen_strategy(given)
    with progress(f"planning {table}") as tick:
        made = plan(config, table, strategy, say, dry=dry, local=local, indexing=tick)
    if made["instant"] is not None:
        say(_line(made))
    return made


def _say_nothing(table: str, made: dict[str, Any]) -> None:
    """Why there is no plan."""
    say(f"{table}: nothing {'else ' if made.get('left_out') else ''}is worth a rewrite")


def _outlook_lines(made: dict[str, Any]) -> Iterator[str]:
    """What a run would do to each partition."""
    from bridge.planner.reports.text import human_bytes

    found = made.get("by_partition", ())
    for each in found:
        size, read = human_bytes(each["num_bytes"]), human_bytes(each["old_bytes"])
        after = each["files"] - each["old_files"] + each["new_files"]
        line = f"  {each['partition'] or 'the table'}: {each['files']} files, {size} -> {after} "
        line += f"files, about {size}; reads and writes {each['old_files']} files, {read}"
        if each["groups"] > 1 and made["columns"]:
            line += f", in {each['groups']} groups, of which "
            line += f"{each['depth']} share values" if each["depth"] > 1 else "none share values"
        yield line
    if found:
        read = human_bytes(made["bytes"])
        yield f"reads {made['old_files']} files, {read}; writes {made['new_files']}, at most {read}"


def _line(made: dict[str, Any]) -> str:
    from bridge.planner.reports.text import count, count_files, human_bytes

    if "problem" in made:
        return f"{made['instant']}  {made['problem']}"
    by = f" by {', '.join(made['columns'])}" if made["columns"] else ""
    size = "" if made["bytes"] is None else f", {human_bytes(made['bytes'])}"
    return (
        f"{made['instant']}  {made['layout']}{by}: {count_files(made['old_files'])}{size}"
        f" -> {count_files(made['new_files'])}, in {count(made['groups'], 'group')} of "
        f"{count(made['partitions'], 'partition')}"
    )


@cluster.command("run")
@click.argument("table")
@click.argument("instant", required=False)
@click.option(
    "--now", is_flag=True, help="Make plans and execute them until nothing is worth a rewrite."
)
@click.option(
    "--dry-run", is_flag=True, help="With --now: tell what a run would do, and write nothing."
)
@click.option(
    "--dearer",
    is_flag=True,
    help="Commit also what scans read at a higher cost than the old files.",
)
@watch_options
@click.option("--local", is_flag=True, help="Use threads of this process instead of Spark.")
@click.option("--publish", "then_publish", is_flag=True, help="Publish what was clustered, too.")
@strategy_options
@_OUTPUT
@settings(*_RUN_SETTINGS)
@interruptible()
def run(
    config: Config,
    table: str,
    instant: str | None,
    now: bool,
    dry_run: bool,
    dearer: bool,
    watch: str | None,
    after_commits: int | None,
    after_small_files: int | None,
    after_time: str | None,
    local: bool,
    then_publish: bool,
    output: str,
    **given: Any,
) -> None:
    """Execute the plan of an INSTANT, or the oldest plan that waits.

    New files are checked against the old ones (rows and checksums) before one commit makes readers
    use them. A run that was stopped is repeated: groups that were done are not done again.
    --now commits plan after plan, until all small files of a partition are in few large ones.
    Exit status 3: a group or a file stays as it was, with the reason, also if an earlier run has
    refused it; a plan is damaged; or the plan was cancelled.
    The options of `schedule` count with --now.

    \b
    skipbridge cluster run demo.flights --now --by carrier
    skipbridge cluster run demo.flights --now --by carrier --dry-run
    skipbridge cluster run demo.flights --watch 1m --after-commits 10 --by carrier
    skipbridge cluster run demo.flights 20260102030405678
    """
    from bridge.clustering.commands.now import run_now
    from bridge.clustering.commands.run import run as execute
    from bridge.clustering.planning.triggers import Triggers
    from bridge.kernel.config import parse_seconds
    from bridge.kernel.errors import InvalidRequest

    if now and instant is not None:
        raise InvalidRequest(
            "an instant and --now were given", "give the instant of a plan, or --now"
        )
    if then_publish:
        check_publish(config, table)
    if watch is not None:
        if instant is not None or dry_run or given["again"]:
            raise InvalidRequest(
                "--watch plans anew in each round", "leave out the instant, --dry-run and --again"
            )
        usual = None if after_small_files or after_time else 1
        seconds = None if after_time is None else parse_seconds(after_time)
        triggers = Triggers(after_commits or usual, after_small_files, seconds)
        strategy = chosen_strategy(given)
        watch_and_cluster(
            config,
            table,
            parse_seconds(watch),
            strategy,
            triggers,
            local=local,
            output=output,
            publish=then_publish,
        )
        return
    if dry_run and not now:
        raise InvalidRequest(
            "--dry-run says what --now would do",
            "add --now; `cluster show` says what a saved plan will do",
        )
    if dry_run:
        made = _schedule(config, table, given, dry=True, local=local)
        if made["instant"] is None:
            _say_nothing(table, made)
        if output == "json":
            emit_json(made)
        for line in _outlook_lines(made) if output == "text" else ():
            emit(line)
        return
    if now:
        with progress_bars(f"indexing {table}", f"clustering {table}") as (indexing, tick):
            report = run_now(
                config,
                table,
                chosen_strategy(given),
                say,
                local=local,
                judged=not dearer,
                progress=tick,
                indexing=indexing,
                planned=lambda made: say(_line(made)),
                told=(lambda each: print_report(each, output))
                if output == "text"
                else lambda each: None,
            )
        if report["instant"] is None:
            _say_nothing(table, report)
            if not then_publish:
                apart = report.get("left_out") or report.get("damaged")
                raise SystemExit(PROBLEMS if apart else 0)
        if output == "text" and len(report.get("plans", ())) > 1:
            emit(total_line(report))
    else:
        with progress(f"clustering {table}") as tick:
            report = execute(config, table, instant, local=local, judged=not dearer, progress=tick)
        if output == "text":
            print_report(report, output)
    if output == "json":
        if then_publish:
            report["publish"] = run_publish(config, table, local)
        emit_json(report)
    if then_publish and output == "text":
        report["publish"] = run_publish(config, table, local)
        show_published(report["publish"], output)
    if then_publish:
        exit_if_kept(report["publish"])
    states = [each["state"] for each in report.get("plans", [report]) if "state" in each]
    stays = any(report.get(key) for key in ("rejected", "aside", "left_out", "damaged"))
    if stays or "cancelled" in states:
        raise SystemExit(PROBLEMS)


@cluster.command("show")
@click.argument("table")
@click.argument("instant", required=False)
@_OUTPUT
@settings(*_SETTINGS)
def show(config: Config, table: str, instant: str | None, output: str) -> None:
    """The plans of TABLE, their states, what was planned and what is written.

    With an INSTANT, the groups of that plan: the old files, then the new ones.
    Exit status 3: files lie in directories that TABLE was published from, and no engine reads
    them; `accept` ends that.
    """
    from bridge.clustering.commands.publish import list_left_files as files_left
    from bridge.clustering.commands.run import show as plans

    found = plans(config, table, instant)
    left = files_left(config, table)
    if output == "json":
        emit_json(found)
        found = []
    for each in found:
        emit(f"{each['state']:<10} {_line(each)}{_written(each)}")
        for group in each.get("plan", ()):
            emit(
                f"  group {group['id']} {group['partition'] or '.'} -> {group['outputs']} files"
                f"{_group_written(group.get('written'))}"
            )
            for name, text in group.get("told", ()):
                emit(f"    {name}: {text}")
            for place, file in enumerate(group["files"]):
                spans = "  ".join(
                    f"{column} {bounds[place][0]} .. {bounds[place][1]}"
                    for column, bounds in group["metrics"]
                    if column in each["columns"]
                )
                emit(f"    {file['path'].rpartition('/')[2]}  {file['size']}  {spans}".rstrip())
            for file in (group.get("written") or {}).get("new", ()):
                emit(f"    -> {file['path'].rpartition('/')[2]}  {file['size']}")
    if not found and output == "text":
        say(f"{table} has no clustering plans")
    show_left(left)
    if left:
        raise SystemExit(PROBLEMS)


def _written(plan: dict[str, Any]) -> str:
    """What was written for a plan, if anything was."""
    from bridge.planner.reports.text import count_files, human_bytes

    told = ""
    if plan.get("written_files"):
        size = human_bytes(plan["written_bytes"])
        told += f"; written: {count_files(plan['written_files'])}, {size}"
    if plan.get("rejected_groups"):
        told += f"; rejected: {plan['rejected_groups']} groups"
    return told


def _group_written(group: dict[str, Any] | None) -> str:
    if group is None:
        return ""
    if group["rejected"]:
        return f", rejected: {group['rejected']}"
    return f", {len(group['new'])} written, {group['rows']:,} rows"


@cluster.command("cancel")
@click.argument("table")
@click.argument("instant")
@settings(*_SETTINGS)
def cancel(config: Config, table: str, instant: str) -> None:
    """Cancel a plan that is not committed yet; what was written for it is never read.

    Plans of Hudi tables are refused: only Hudi takes them back.
    """
    from bridge.clustering.commands.run import cancel as stop

    done = stop(config, table, instant)
    emit(f"{done['table']} {done['instant']} cancelled")


cluster.add_command(advise)
cluster.add_command(publish)
cluster.add_command(revert)
cluster.add_command(accept)
cluster.add_command(originals)
cluster.add_command(clean)
