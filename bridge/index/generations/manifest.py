"""Manifests: one generation of an index as JSON, with checksums of itself and of its shards."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from bridge.index.kinds.definition import IndexSettings, KindDefinition
from bridge.kernel.errors import IndexCorrupt, IndexNewer
from bridge.storage.commit_log import checksum, seal

FORMAT = "skipbridge-index"
VERSION = 8
"""The layout of an index: raise it with any change of what its files hold, or of what readers take
from data files. An index of an earlier layout is not read; a build makes it anew with its settings.
"""


@dataclass(frozen=True, slots=True)
class Blob:
    """A file of the index below its root.

    Attributes:
        name: relative to the root.
        sha256: checksum of the whole file.
        tail: length in bytes of the part at the end that locates the rest (a Parquet footer). It
            has its own checksum, so that parts of the file can be read. 0: none.
        tail_sha256: checksum of the tail.
    """

    name: str
    size: int
    sha256: str
    tail: int = 0
    tail_sha256: str = ""


@dataclass(frozen=True, slots=True)
class PayloadBlobs:
    """A shard's files for one definition, identified by its signature."""

    signature: str
    header: Blob
    body: Blob | None = None


@dataclass(frozen=True, slots=True)
class Shard:
    """The entries that one build or one compaction wrote.

    Attributes:
        id: unique; part of the names of its files.
        num_files: number of entries, including dead ones.
        dead: number of entries deleted by tombstones, as of this generation.
        nan: ``footer`` or ``scan``: how NaN counts were found.
        payloads: the files of definitions other than min/max.
        modes: how much min/max keeps of each column.
    """

    id: str
    files: Blob
    columns: Blob
    num_files: int
    dead: int = 0
    nan: str = "footer"
    payloads: tuple[PayloadBlobs, ...] = ()
    modes: tuple[tuple[str, str], ...] = ()

    def payload(self, signature: str) -> PayloadBlobs | None:
        return next((p for p in self.payloads if p.signature == signature), None)

    def blobs(self) -> list[Blob]:
        """Every file of the shard."""
        found = [self.files, self.columns]
        for payload in self.payloads:
            found += [payload.header, payload.body] if payload.body else [payload.header]
        return found


@dataclass(frozen=True, slots=True)
class ClusteringState:
    """What clustering has replaced, as of a generation.

    Attributes:
        instants: of the plans that were committed, oldest first.
        replacements: which files replace which, see `bridge.index.generations.replacements`.
        shards: the entries of the new files. They are no entries of the table: without the
            replacements, the index says nothing of these files.
    """

    instants: tuple[str, ...]
    replacements: Blob
    shards: tuple[Shard, ...]

    def blobs(self) -> list[Blob]:
        """Every file of the index that it needs."""
        return [self.replacements, *(blob for shard in self.shards for blob in shard.blobs())]


@dataclass(frozen=True, slots=True)
class Manifest:
    """One generation.

    Attributes:
        builder: unique id of the build that committed it; tells whose write won after a timeout.
        created: microseconds since the epoch.
        location: canonical URI of the table's root. Shards store paths below it as relative.
        shards: oldest first.
        tombstones: dead entries of all shards; None if there are none.
        settings: what the index holds. A refresh keeps the settings.
        version: the layout of the files it names; `VERSION`, unless only settings are asked for.
        complete: whether it names every file that the build had listed. False for the
            intermediate commits of a build, and such a generation is not the table's file set.
        clustering: None if no file is replaced by clustered ones.
        checksum: of all other fields; names the generation's local copy.
    """

    generation: int
    builder: str
    created: int
    table: str
    location: str
    shards: tuple[Shard, ...]
    tombstones: Blob | None = None
    settings: IndexSettings = field(default_factory=IndexSettings)
    complete: bool = True
    clustering: ClusteringState | None = None
    version: int = VERSION
    checksum: str = field(default="", compare=False)

    @property
    def num_files(self) -> int:
        return sum(shard.num_files - shard.dead for shard in self.shards)

    def blobs(self) -> list[Blob]:
        """Every file of the index that this generation needs."""
        found = [blob for shard in self.shards for blob in shard.blobs()]
        if self.clustering is not None:
            found += self.clustering.blobs()
        return [*found, self.tombstones] if self.tombstones else found

    def to_bytes(self) -> bytes:
        return seal(_body(self))


def clustered_files(manifest: Manifest, shards: tuple[Shard, ...] | None = None) -> Manifest:
    """The clustered files of a generation, as the manifest of an index of their own.

    Its checksum depends on the files alone, so that local copies outlive generations.

    Args:
        shards: of files that are not committed, in place of the clustered ones.
    """
    if shards is None:
        shards = () if manifest.clustering is None else manifest.clustering.shards
    alone = replace(
        manifest, shards=shards, tombstones=None, clustering=None, complete=True, checksum=""
    )
    named = replace(alone, generation=0, builder="clustered", created=0)
    return replace(alone, checksum=checksum(_body(named)))


def parse_manifest(raw: bytes, name: str, *, outdated: bool = False) -> Manifest:
    """Reads a manifest.

    Args:
        outdated: take one of an earlier layout, for its settings and the names of its files.

    Errors:
        IndexCorrupt: not a manifest, an earlier layout, or a wrong checksum.
        IndexNewer: a later version of this program wrote it.
    """
    remedy = "skipbridge index build rebuilds it"
    try:
        body = json.loads(raw)
        if body["format"] != FORMAT:
            raise IndexCorrupt(f"{name} is not an index manifest: {body['format']!r}", remedy)
        stated = body.pop("checksum")
        whole = stated == checksum(body)
        version = body["version"]
        if version != VERSION and not (outdated and whole and version < VERSION):
            found = f"{name} has layout {version}, this program reads {VERSION}"
            if whole and version > VERSION:
                raise IndexNewer(found, "upgrade this program, or drop the index and rebuild it")
            raise IndexCorrupt(found, remedy)
        if not whole:
            raise IndexCorrupt(f"{name} does not match its checksum {stated[:12]}", remedy)
        shards = tuple(_parse_shard(shard) for shard in body["shards"])
        tombstones = body["tombstones"]
        return Manifest(
            generation=body["generation"],
            builder=body["builder"],
            created=body["created"],
            table=body["table"],
            location=body["location"],
            shards=shards,
            tombstones=Blob(**tombstones) if tombstones else None,
            settings=_parse_settings(body.get("settings", {})),
            complete=body.get("complete", True),
            clustering=_parse_clustering(body.get("clustering")),
            version=version,
            checksum=stated,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise IndexCorrupt(f"{name} is not an index manifest: {error}", remedy) from error


def _parse_shard(body: dict[str, Any]) -> Shard:
    return Shard(
        id=body["id"],
        files=Blob(**body["files"]),
        columns=Blob(**body["columns"]),
        num_files=body["num_files"],
        dead=body["dead"],
        nan=body["nan"],
        payloads=tuple(
            PayloadBlobs(
                p["signature"], Blob(**p["header"]), Blob(**p["body"]) if p["body"] else None
            )
            for p in body.get("payloads", ())
        ),
        modes=tuple(sorted(body.get("modes", {}).items())),
    )


def _parse_clustering(body: dict[str, Any] | None) -> ClusteringState | None:
    if body is None:
        return None
    shards = tuple(_parse_shard(shard) for shard in body["shards"])
    return ClusteringState(tuple(body["instants"]), Blob(**body["replacements"]), shards)


def _parse_settings(body: dict[str, Any]) -> IndexSettings:
    return IndexSettings(
        tuple(
            KindDefinition(d["kind"], d["on"], tuple(sorted(d["options"].items())), d["visible"])
            for d in body.get("definitions", ())
        ),
        tuple(sorted(body.get("modes", {}).items())),
        body.get("minmax_visible", True),
    )


def _body(manifest: Manifest) -> dict[str, Any]:
    body = {
        "format": FORMAT,
        "version": manifest.version,
        "generation": manifest.generation,
        "builder": manifest.builder,
        "created": manifest.created,
        "table": manifest.table,
        "location": manifest.location,
        "settings": {
            "definitions": [
                {"kind": d.kind, "on": d.on, "options": dict(d.options), "visible": d.visible}
                for d in manifest.settings.definitions
            ],
            "modes": dict(manifest.settings.modes),
            "minmax_visible": manifest.settings.minmax_visible,
        },
        "complete": manifest.complete,
        "shards": [_shard(shard) for shard in manifest.shards],
        "tombstones": _blob(manifest.tombstones) if manifest.tombstones else None,
    }
    if manifest.clustering is not None:
        body["clustering"] = {
            "instants": list(manifest.clustering.instants),
            "replacements": _blob(manifest.clustering.replacements),
            "shards": [_shard(shard) for shard in manifest.clustering.shards],
        }
    return body


def _shard(shard: Shard) -> dict[str, Any]:
    return {
        "id": shard.id,
        "files": _blob(shard.files),
        "columns": _blob(shard.columns),
        "num_files": shard.num_files,
        "dead": shard.dead,
        "nan": shard.nan,
        "payloads": [
            {
                "signature": p.signature,
                "header": _blob(p.header),
                "body": _blob(p.body) if p.body else None,
            }
            for p in shard.payloads
        ],
        "modes": dict(shard.modes),
    }


def _blob(blob: Blob) -> dict[str, Any]:
    body: dict[str, Any] = {"name": blob.name, "size": blob.size, "sha256": blob.sha256}
    if blob.tail:
        body |= {"tail": blob.tail, "tail_sha256": blob.tail_sha256}
    return body
