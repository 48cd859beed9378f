"""Canonical URIs: one spelling per file.

Statistics are found by path. ``/x``, ``file:/x``, ``file:///x`` and ``local:///x`` are one file.
With different spellings files would be missing in the index, and nothing would be pruned, silently.

Paths are raw, as in Hive, Hadoop and Trino: nothing is percent-decoded or percent-encoded. ``%20``
in a directory name is those three characters.

==============================  ==================================
given as                        canonical
==============================  ==================================
``/x``, ``file:/x``, ``local``  ``file:///x``
``s3a``, ``s3n``, ``s3``        ``s3://bucket/key``
``gs``, ``gcs``                 ``gs://bucket/key``
``abfs(s)``, ``wasb(s)``        ``abfss://container@account.dfs.…/key``
``hdfs``                        ``hdfs://host:port/x``
==============================  ==================================
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bridge.kernel.errors import InvalidUri

_SCHEMES = {
    "file": "file",
    "local": "file",
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "gcs": "gs",
    "abfs": "abfss",
    "abfss": "abfss",
    "wasb": "abfss",
    "wasbs": "abfss",
    "hdfs": "hdfs",
}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_HIERARCHICAL = frozenset({"file", "hdfs"})
_BUCKETS = frozenset({"s3", "s3a", "s3n", "gs", "gcs"})
_UNUSUAL = re.compile(r"/\.{0,2}(?:/|\Z)|\0")
"""A segment that is empty, '.' or '..', or a slash at the end; not a name like '.cache'."""


@dataclass(frozen=True, slots=True)
class Location:
    """The parts of a canonical URI; ``path`` has no slash at either end."""

    scheme: str
    authority: str
    path: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}/{self.path}"


def canonical(text: str) -> str:
    """The canonical spelling of a path or URI, without a trailing slash.

    Errors:
        InvalidUri: relative, with an unknown scheme, with ``..``, or with an empty segment on a
            store where ``a//b`` and ``a/b`` differ.

    >>> canonical("/warehouse//t/a%20b/"), canonical("s3a://bucket/t/f.parquet")
    ('file:///warehouse/t/a%20b', 's3://bucket/t/f.parquet')
    """
    scheme, _, rest = text.partition(":")
    if scheme == "file" and rest.startswith("/"):
        path = rest[2:] if rest.startswith("///") else rest
        if not is_unusual(path):
            return f"file://{path}"
    elif scheme in _BUCKETS and rest.startswith("//"):
        begin = rest.find("/", 2)
        if begin > 2 and not is_unusual(rest[begin:]) and "@" not in rest[:begin]:
            return f"{_SCHEMES[scheme]}:{rest}"
    return str(parse(text))


def is_unusual(path: str) -> bool:
    """Whether a path that begins with a slash may have another canonical spelling, or none."""
    return _UNUSUAL.search(path) is not None


def parse(text: str) -> Location:
    """Like `canonical`, as a `Location`."""
    if text.startswith("/"):
        return Location("file", "", _path(text, text, "file"))
    matched = _SCHEME.fullmatch(text)
    if matched is None:
        raise InvalidUri(f"not an absolute path or URI: {text!r}", "write /path or scheme://…")
    scheme = _SCHEMES.get(matched[1].lower())
    if scheme is None:
        known = ", ".join(_SCHEMES)
        raise InvalidUri(
            f"storage scheme {matched[1]!r} of {text!r} is not known", f"one of {known}"
        )
    authority, path = _authority(matched[2], text)
    if scheme == "file":
        if authority not in ("", "localhost"):
            raise InvalidUri(f"a local path with a host: {text!r}", "write file:///path")
        authority = ""
    elif scheme == "hdfs":
        # A host has a port; a name without one may be a name service, whose case counts.
        authority = authority.lower() if ":" in authority else authority
    elif not authority:
        raise InvalidUri(f"no bucket in {text!r}", f"write {scheme}://bucket/key")
    if scheme in ("s3", "gs") and "@" in authority:
        raise InvalidUri(
            f"{without_user(text)} was given with credentials in it, which logs would show",
            "give them by the storage.* options or the environment",
        )
    if scheme == "abfss":
        authority = _azure(authority, text)
    return Location(scheme, authority, _path(path, text, scheme))


def _authority(rest: str, text: str) -> tuple[str, str]:
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        return authority, slash + path
    if rest.startswith("/"):  # file:/x, hdfs:/x: how Hadoop's Path prints an empty authority
        return "", rest
    raise InvalidUri(f"not an absolute URI: {text!r}", "write scheme://…")


def _azure(authority: str, text: str) -> str:
    container, at, host = authority.partition("@")
    if not at or not container or not host:
        raise InvalidUri(
            f"no container and account in {text!r}",
            "write abfss://container@account.dfs.core.windows.net/path",
        )
    return f"{container}@{host.lower().replace('.blob.', '.dfs.')}"


def _path(path: str, text: str, scheme: str) -> str:
    if "\0" in path:
        raise InvalidUri(f"a NUL character in {text!r}", "rename the file")
    path = path.strip("/") if scheme in _HIERARCHICAL else path[1:].removesuffix("/")
    if not path:
        return ""
    if not is_unusual(f"/{path}"):
        return path
    segments = path.split("/")
    if ".." in segments:
        raise InvalidUri(f"'..' in {text!r}", "write the path without '..'")
    if scheme in _HIERARCHICAL:
        return "/".join(s for s in segments if s not in ("", "."))
    if "" in segments or "." in segments:  # a different key in an object store
        there = "/".join(s for s in segments if s not in ("", "."))
        raise InvalidUri(
            f"an empty or '.' segment in {text!r}: no object is found here by such a name",
            f"Hive and Spark write to .../{there} then: name that, if they wrote the files, or "
            "copy the objects there",
        )
    return path


def join(root: str, relative: str) -> str:
    """A canonical URI below a canonical root; ``relative`` is raw and slash-separated."""
    return f"{root.removesuffix('/')}/{relative}"


def relative(root: str, uri: str) -> str | None:
    """The path of a canonical URI below a canonical root; None if it is not below.

    >>> relative("file:///t", "file:///t/a/f"), relative("file:///t", "file:///tx/f")
    ('a/f', None)
    """
    prefix = root.removesuffix("/") + "/"
    return uri[len(prefix) :] if uri.startswith(prefix) else None


def parent(uri: str) -> str:
    """The directory of a canonical URI; a root is its own parent."""
    place = parse(uri)
    return str(Location(place.scheme, place.authority, place.path.rpartition("/")[0]))


def without_user(address: str) -> str:
    """An address as it may be printed: without user, password and query.

    >>> without_user("https://me:secret@host:9000/x?token=1"), without_user("s3://key:secret@b/c")
    ('https://host:9000/x', 's3://b/c')
    """
    return re.sub(r"(?<=//)[^/?#]*@", "", address).partition("?")[0]


def is_text(uri: str) -> bool:
    """False for a local name that is not UTF-8: columns of paths cannot hold it."""
    return not any("\ud800" <= character <= "\udfff" for character in uri)


def printable(uri: str) -> str:
    """A local name as people can read it: bytes that are not UTF-8 are escapes, as ``\\xe9``."""
    return uri.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
