"""Options of ``skipbridge cluster`` that say what is rewritten and how."""

from __future__ import annotations

from typing import Any

import click


def strategy_options(command: Any) -> Any:
    """Adds the options of `chosen_strategy`."""
    options = [
        click.option(
            "--layout",
            help="binpack, linear, kdtree, hilbert, zorder or an installed one.  [default: linear "
            "with one column, kdtree with several (hilbert on Hudi tables), binpack with none]",
        ),
        click.option(
            "--by", "columns", multiple=True, metavar="COLUMN", help="Sort column; repeat it."
        ),
        click.option(
            "--group",
            help="Which files are rewritten together: overlap, range, time, size, random or an "
            "installed one.  [default: overlap with sort columns, else size]",
        ),
        click.option(
            "--keep",
            multiple=True,
            metavar="FILTER",
            help="Plan only groups that pass: fewer (fewer files remain), overlapping (files share "
            "values of the sort columns) or an installed one; repeat it.",
        ),
        click.option("--target", default="1GiB", show_default=True, help="Size of new files."),
        click.option(
            "--small", default="600MiB", show_default=True, help="Only smaller files are rewritten."
        ),
        click.option(
            "--group-bytes",
            default="2GiB",
            show_default=True,
            help="Most bytes of one group, whose rows one task puts in order.",
        ),
        click.option("--groups", type=click.IntRange(min=1), default=30, show_default=True),
        click.option(
            "--min-files",
            type=click.IntRange(min=1),
            default=2,
            show_default=True,
            help="Least number of files in a group.",
        ),
        click.option(
            "--partition", multiple=True, metavar="PATTERN", help="As day=2026-01-*; repeat it."
        ),
        click.option(
            "--recent", type=click.IntRange(min=1), metavar="N", help="The N newest partitions."
        ),
        click.option(
            "--skip",
            type=click.IntRange(min=0),
            default=0,
            metavar="N",
            help="Leave out the N newest partitions.",
        ),
        click.option(
            "--recent-days",
            type=click.IntRange(min=1),
            metavar="N",
            help="The partitions of N days, up to the newest one. Names tell their day, as "
            "day=2026-01-31, 20260131 or year=2026/month=1/day=31.",
        ),
        click.option(
            "--rolling",
            type=click.IntRange(min=2),
            metavar="N",
            help="Each hour another Nth of the partitions, so that regular runs take all in turn.",
        ),
        click.option("--oldest-first", is_flag=True, help="Plan old partitions before new ones."),
        click.option(
            "--again", is_flag=True, help="Also rewrite what was clustered, from its old files."
        ),
        click.option(
            "--overlap-depth",
            type=click.IntRange(min=1),
            metavar="N",
            help="Rewrite files of any size, also clustered ones, that share values of the sort "
            "columns with N or more others.",
        ),
        click.option(
            "--compression",
            type=click.Choice(["none", "snappy", "gzip", "zstd", "lz4", "brotli"]),
            help="[default: that of the old files]",
        ),
        click.option("--row-group", default="128MiB", show_default=True, help="Its size."),
        click.option(
            "--bloom-filter",
            multiple=True,
            metavar="COLUMN",
            help="Write a bloom filter of this column into new Parquet files, besides those that "
            "the old files have; repeat it.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def chosen_strategy(given: dict[str, Any]) -> Any:
    """The `Strategy` that the options ask for."""
    from bridge.clustering.planning.eligibility import Limits, PartitionFilter
    from bridge.clustering.planning.scheduling import Strategy
    from bridge.kernel.config import parse_size

    return Strategy(
        given["layout"] or "",
        tuple(given["columns"]),
        given["group"] or "",
        Limits(
            parse_size(given["target"]),
            parse_size(given["small"]),
            parse_size(given["group_bytes"]),
            given["groups"],
            given["min_files"],
        ),
        PartitionFilter(
            tuple(given["partition"]),
            not given["oldest_first"],
            given["recent"],
            given["skip"],
            given["recent_days"],
            given["rolling"],
        ),
        given["compression"],
        parse_size(given["row_group"]),
        given["again"],
        given["overlap_depth"],
        tuple(given["keep"]),
        tuple(given["bloom_filter"]),
    )
