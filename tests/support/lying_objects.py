"""Lies of an object store about its objects: answers to reads, looks, writes and deletes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.support.memory_store import Answer, Asked, Lie, MemoryStore

_ERROR = b"<?xml version='1.0'?><Error><Code>InternalError</Code><Message>sorry</Message></Error>"
_LOGIN = b"<html><head><title>Sign in</title></head><body>proxy</body></html>"
_NOTHING = b"<DeleteResult></DeleteResult>"
_DELETED = re.compile(rb"<Deleted>(<Key>[^<]*</Key>)</Deleted>")
Change = Callable[[MemoryStore, Asked, Answer, bytes | None], Answer]
"""Of an answer to a request, given what the store held of the key before."""


@dataclass(frozen=True, slots=True)
class Way:
    """A lie about requests of one kind.

    Attributes:
        claims: it states an absence or another object, which one may believe though it passes.
    """

    kind: str
    change: Change
    claims: bool = False


def kind_of(asked: Asked) -> str:
    """What a request is for: ``read``, ``look``, ``write``, ``create``, ``delete`` or ``list``."""
    if asked.listing:
        return "list"
    if asked.method == "PUT":
        return "create" if asked.headers.get("if-none-match") == "*" else "write"
    return {"GET": "read", "HEAD": "look", "POST": "delete"}[asked.method]


def _says(status: int, body: bytes) -> Change:
    return lambda store, asked, answer, before: Answer(status, body, {"Content-Type": "text/xml"})


def _in_place(body: bytes) -> Change:
    """Other bytes under the headers of the right ones."""
    return lambda store, asked, answer, before: Answer(answer.status, body, answer.headers)


def _whole(store: MemoryStore, asked: Asked, answer: Answer, before: bytes | None) -> Answer:
    held = store.objects.get(asked.key)
    headers = {k: v for k, v in answer.headers.items() if k != "Content-Range"}
    return Answer(200, held.content, headers) if held is not None else answer


def _shifted(store: MemoryStore, asked: Asked, answer: Answer, before: bytes | None) -> Answer:
    """The range beside the one that was asked for, and it says so."""
    found = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", answer.headers.get("Content-Range", ""))
    held = store.objects.get(asked.key)
    if found is None or held is None or int(found[1]) == 0:
        return answer
    start, end = int(found[1]) - 1, int(found[2])
    told = {**answer.headers, "Content-Range": f"bytes {start}-{end - 1}/{found[3]}"}
    return Answer(206, held.content[start:end], told)


def _half(store: MemoryStore, asked: Asked, answer: Answer, before: bytes | None) -> Answer:
    return Answer(answer.status, answer.body[: len(answer.body) // 2], answer.headers)


def _longer(store: MemoryStore, asked: Asked, answer: Answer, before: bytes | None) -> Answer:
    return Answer(answer.status, answer.body + b"x", answer.headers)


def _late(store: MemoryStore, asked: Asked, answer: Answer, before: bytes | None) -> Answer:
    time = {"Last-Modified": "Fri, 01 Jan 2100 00:00:00 GMT"}
    return Answer(answer.status, answer.body, answer.headers | time)


def _undone(status: int, body: bytes) -> Change:
    """The store did not do what it was asked."""

    def change(store: MemoryStore, asked: Asked, answer: Answer, before: bytes | None) -> Answer:
        if before is None:
            store.objects.pop(asked.key, None)
        else:
            store.put(asked.key, before)
        return Answer(status, body, answer.headers)

    return change


def _stored_half(store: MemoryStore, asked: Asked, answer: Answer, before: bytes | None) -> Answer:
    held = store.objects[asked.key]
    store.put(asked.key, held.content[: len(held.content) // 2], metadata=held.metadata)
    return answer


def _again(store: MemoryStore, asked: Asked, answer: Answer, before: bytes | None) -> Answer:
    """Two writers have created one object."""
    return Answer(200, b"", {"ETag": '"0"'})


def _wordless(store: MemoryStore, asked: Asked, answer: Answer, before: bytes | None) -> Answer:
    """No headers."""
    return Answer(answer.status, answer.body)


def _kept(body: Callable[[bytes], bytes]) -> Change:
    """Nothing was deleted."""

    def change(store: MemoryStore, asked: Asked, answer: Answer, before: bytes | None) -> Answer:
        store.objects.update(store.undeleted)
        return Answer(200, body(answer.body), answer.headers)

    return change


WAYS: dict[str, Way] = {
    "read an error": Way("read", _says(200, _ERROR), claims=True),
    "read a login": Way("read", _says(200, _LOGIN), claims=True),
    "read an error in its place": Way("read", _in_place(_ERROR)),
    "read nothing": Way("read", _in_place(b"")),
    "read half": Way("read", _half),
    "read more": Way("read", _longer),
    "read all": Way("read", _whole),
    "read beside": Way("read", _shifted),
    "read none": Way("read", _says(404, b""), claims=True),
    "look and none": Way("look", _says(404, b""), claims=True),
    "look and more": Way("look", _longer, claims=True),
    "look and late": Way("look", _late, claims=True),
    "look and refused": Way("look", _says(403, b""), claims=True),
    "write nothing": Way("write", _undone(200, _ERROR), claims=True),
    "write half": Way("write", _stored_half, claims=True),
    "write and lose it": Way("write", _says(500, _ERROR)),
    "write too much": Way("write", _undone(507, _ERROR), claims=True),
    "create nothing": Way("create", _undone(200, _ERROR), claims=True),
    "create half": Way("create", _stored_half, claims=True),
    "create and refuse": Way("create", _says(412, b"")),
    "refuse to create": Way("create", _undone(412, b"")),
    "create in conflict": Way("create", _undone(409, _ERROR)),
    "create and lose it": Way("create", _says(500, _ERROR)),
    "create again": Way("create", _again, claims=True),
    "read without a word": Way("read", _wordless),
    "look without a word": Way("look", _wordless),
    "write without a word": Way("write", _wordless),
    "create without a word": Way("create", _wordless),
    "delete in error": Way("delete", _kept(lambda _: _ERROR), claims=True),
    "delete nothing": Way("delete", _kept(lambda _: _NOTHING), claims=True),
    "delete and say so of none": Way("delete", lambda *a: Answer(200, _NOTHING), claims=True),
    "refuse to delete": Way(
        "delete",
        _kept(lambda body: _DELETED.sub(rb"<Error>\1<Code>AccessDenied</Code></Error>", body)),
        claims=True,
    ),
}


def lie_of(store: MemoryStore, ways: Sequence[str], when: str, told: list[str]) -> Lie:
    """Lies in all of some ways; ``once``: to one request of each kind. ``told`` gets the ways."""
    left = list(ways)

    def lie(asked: Asked, answer: Answer) -> Answer:
        for way in list(left):
            if WAYS[way].kind == kind_of(asked):
                told.append(way)
                answer = WAYS[way].change(store, asked, answer, store.before)
                if when == "once":
                    left.remove(way)
        return answer

    return lie
