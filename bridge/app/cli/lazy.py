"""A click group that imports each command on first use and prints errors for people.

``skipbridge --help`` then takes 0.1 s; importing Arrow, sqlglot and Thrift takes 2 s.
"""

from __future__ import annotations

import errno
import importlib
import logging
import os
import sys
from collections.abc import Mapping
from typing import Any

import click

from bridge.kernel.errors import BridgeError, Category, StorageFailure, StorageFull

INTERRUPTED = 130
_OF_A_PLACE = frozenset(
    {
        errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR,
        errno.ENAMETOOLONG, errno.ELOOP, errno.EIO, errno.ESTALE,
    }
)  # fmt: skip
"""What is wrong with a path, and not with this program."""
log = logging.getLogger("bridge")


class Verbs(click.Group):
    """A group whose help shows each verb's first sentence in full; click would truncate it."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [
            (name, command.get_short_help_str(limit=1000))
            for name in self.list_commands(ctx)
            if (command := self.get_command(ctx, name)) is not None
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class LazyGroup(click.Group):
    """The top-level command group.

    Args:
        commands_at: by name: the command's place (``module:attribute``) and one line of help.
    """

    def __init__(
        self, *args: Any, commands_at: Mapping[str, tuple[str, str]], **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self._commands_at = commands_at

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Commands in the order in which a new user needs them."""
        return list(self._commands_at)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = self._commands_at.get(cmd_name)
        if found is None:
            return None
        module, _, attribute = found[0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._commands_at.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self._commands_at and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], self._commands_at, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "see skipbridge --help"
            ctx.fail(f"No such command {args[0]!r}; {hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command; exit status 2 for errors that the user can fix, 1 for others."""
        try:
            return super().invoke(ctx)
        except BridgeError as e:
            log.debug("failed", exc_info=True)
            _show(e)
            ctx.exit(2 if e.category is Category.USER_ERROR else 1)
        except KeyboardInterrupt:
            click.echo("stopped", err=True)
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:
            # The reader of the output closed the pipe; avoid Python's complaint at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(1)
        except (click.ClickException, click.exceptions.Exit, click.Abort, SystemExit):
            raise
        except Exception as e:
            log.debug("failed", exc_info=True)
            _show(_unforeseen(e))
            ctx.exit(1)


def _unforeseen(error: Exception) -> BridgeError:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        place = f" at {error.filename}" if error.filename else ""
        return StorageFull(f"no space left{place}", "free some space, then run the command again")
    if isinstance(error, OSError) and error.errno in _OF_A_PLACE and error.filename:
        return StorageFailure(
            f"{error.filename}: {error.strerror}", "give another path, or change its permissions"
        )
    return BridgeError(
        f"{type(error).__name__}: {error}",
        "this is a bug; `skipbridge -v ...` shows the trace to report",
    )


def _show(error: BridgeError) -> None:
    click.secho(f"error {error.code}: {error.message}", fg="red", err=True)
    if error.hint:
        click.echo(f"  -> {error.hint}", err=True)
