"""Tables to index, and builders that die."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from bridge.expression.bind import bind
from bridge.expression.builders import eq
from bridge.expression.prune import prune
from bridge.kernel.types import BIGINT, TRINO, Field
from bridge.storage.port import Storage
from tests.support.lake import Lake


def fill(lake: Lake, count: int, start: int = 0) -> None:
    for i in range(start, start + count):
        lake.write(f"f{i:03d}", {"x": [i * 10, i * 10 + 9], "s": [f"a{i}", f"b{i}"]})


def kept(lake: Lake, value: int) -> list[str]:
    """Names of the files that may hold a value, as a planner finds them."""
    serving, listed = lake.snapshot(), lake.listed()
    fields = (Field("x", BIGINT),)
    never = prune(
        bind(eq("x", value), fields, (), TRINO), serving.statistics(fields, TRINO), TRINO
    ).never
    ordinals = serving.match(listed)
    keep = (ordinals < 0) | ~never[ordinals]
    return [p.rpartition("/")[2] for p in listed.paths.filter(pa.array(keep)).to_pylist()]


class Killed(Exception):
    """The process died here."""


class Dying:
    """A storage whose user dies at its k-th mutation, before or after it is done."""

    def __init__(self, storage: Storage, last: int, *, done: bool) -> None:
        self._storage, self._left, self._done = storage, last, done

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._storage, name)
        if name not in ("put", "put_if_absent", "delete", "copy", "move", "distrust"):
            return method

        def mutate(*arguments: Any) -> Any:
            self._left -= 1
            if self._left == 0 and not self._done:
                raise Killed
            if self._left < 0:
                raise Killed
            result = method(*arguments)
            if self._left == 0:
                raise Killed
            return result

        return mutate
