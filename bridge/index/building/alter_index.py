"""Changes an index without reading data files: new settings, or deletion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bridge.index.building.sample import SIGNATURE
from bridge.index.generations.manifest import Manifest
from bridge.index.generations.store import IndexStore, new_id, next_generation
from bridge.index.kinds.definition import IndexSettings
from bridge.kernel.errors import GenerationNotFound
from bridge.storage.uri import join


def change_settings(
    store: IndexStore, change: Callable[[IndexSettings], IndexSettings]
) -> Manifest:
    """Commits a generation with the same entries and new settings.

    Returns:
        The new manifest; the newest existing one if the settings do not change.

    Errors:
        GenerationNotFound: there is no index.
        InvalidConfiguration: raised by ``change``.
        IndexConflict: other builders committed first, several times in a row.
    """

    def alter(held: Manifest) -> Manifest:
        settings = change(held.settings)
        if settings == held.settings:
            return held
        asked = {SIGNATURE, *(definition.signature for definition in settings.definitions)}
        shards = tuple(
            replace(s, payloads=tuple(p for p in s.payloads if p.signature in asked))
            for s in held.shards
        )
        return next_generation(
            held, held.generation + 1, builder=new_id(), settings=settings, shards=shards
        )

    found = store.update(alter)
    if found is None:
        raise GenerationNotFound(f"there is no index at {store.root}", "skipbridge index build")
    return found


def drop_index(store: IndexStore) -> int:
    """Deletes an index with the plans of clustering; returns the number of deleted files.

    The newest generation is deleted last, so that no older one ever appears to be the newest.
    Planners that have the index open read every file when a query uses a column they had not
    loaded.

    Errors:
        StorageFailure: some files are left; run it again.
    """
    deleted = 0
    for number in store.generations():
        store.storage.delete(join(store.root, f"generations/{number}.json"))
        deleted += 1
    for directory in ("shards", "clustering"):
        listed = store.storage.list_all(join(store.root, directory), recursive=False)
        for path in listed.paths.to_pylist():
            store.storage.delete(path)
            deleted += 1
    return deleted
