"""Changes of an index that read no file: its settings, and its deletion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bridge.errors import GenerationNotFound, IndexConflict
from bridge.index.kinds.definition import IndexSettings
from bridge.index.manifest import Manifest
from bridge.index.store import IndexStore, new_id, next_generation
from bridge.storage.uri import join

_ATTEMPTS = 8
_WITH_SETTINGS = 2
"""The first version that has settings. What a later one says more is not known of old entries."""


def change_settings(
    store: IndexStore, change: Callable[[IndexSettings], IndexSettings]
) -> Manifest:
    """Commits a generation of the same entries with other settings; the newest if none differ.

    Errors:
        GenerationNotFound: there is no index.
        InvalidConfiguration: ``change`` refuses.
        IndexConflict: builders won several times running.
    """
    for attempt in range(_ATTEMPTS):
        held = store.latest()
        if held is None:
            raise GenerationNotFound(f"there is no index at {store.root}", "skipbridge index build")
        settings = change(held.settings)
        if settings == held.settings:
            return held
        asked = {definition.signature for definition in settings.definitions}
        shards = tuple(
            replace(s, payloads=tuple(p for p in s.payloads if p.signature in asked))
            for s in held.shards
        )
        following = next_generation(
            held,
            held.generation + 1,
            builder=new_id(),
            settings=settings,
            shards=shards,
            version=max(held.version, _WITH_SETTINGS),
        )
        try:
            return store.commit(following)
        except IndexConflict:
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError


def drop_index(store: IndexStore) -> int:
    """Deletes all of an index; the number of deleted files.

    The newest generation goes last: at no time is an older one taken for it. Planners that hold
    the index open read every file of columns they have not loaded.

    Errors:
        StorageFailure: some of it is left; run it again.
    """
    deleted = 0
    for number in store.generations():
        store.storage.delete(join(store.root, f"generations/{number}.json"))
        deleted += 1
    shards = store.storage.list_all(join(store.root, "shards"), recursive=False)
    for path in shards.paths.to_pylist():
        store.storage.delete(path)
        deleted += 1
    return deleted
