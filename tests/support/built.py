"""The connector and Hive's jar, built from these sources once and kept until one of them changes.

A build is kept under a digest of all that enters it: sources, poms, generator, template, overlays,
versions and JDK. Tests read it and never write into it.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from bridge.hive.jar import build_jar
from bridge.servers.java import find_jdk
from bridge.servers.maven import build_once, cache_directory
from bridge.trino.plugin import build_plugin, java_release

ROOT = Path(__file__).parents[2]
KEPT_BUILDS = 8
_MADE = {"target", "__pycache__"}


def built_plugin(
    version: str = "476",
    stores: Iterable[str] = (),
    from_server: Path | None = None,
    *,
    hudi: bool = False,
    hive: bool = False,
) -> Path:
    """A plugin directory of `build_plugin`, which is made only if no test made it before."""
    chosen = tuple(sorted(stores))
    words = ("plugin", version, *chosen, str(hudi), from_server.name if from_server else "maven")
    words += ("hive",) if hive else ()
    target = _place("trino_plugin_gen", words, java_release(version))
    # The directory's name is the connector's.
    return (
        build_once(
            target,
            lambda to: build_plugin(
                version, to, from_server, "skipbridge", print, chosen, hudi=hudi, hive=hive
            ),
        )
        / "skipbridge"
    )


def built_jar(version: str = "4.0.1") -> Path:
    """The hooks' jar for a Hive version, which is made only if no test made it before."""
    target = _place("hive_hooks", ("jar", version), 17)
    return next(build_once(target, lambda to: build_jar(version, to, print)).glob("*.jar"))


def digest_of(folder: str, words: Iterable[str] = ()) -> str:
    """A digest of a folder's sources, as they are in the working tree, and of some words."""
    found = hashlib.sha256("\0".join(words).encode())
    for file in sorted((ROOT / folder).rglob("*")):
        if file.is_file() and not _MADE.intersection(file.relative_to(ROOT).parts):
            found.update(f"\0{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    return found.hexdigest()[:20]


def _place(folder: str, words: tuple[str, ...], release: int) -> Path:
    javac = find_jdk(release).home / "bin" / "javac"
    said = subprocess.run([javac, "-version"], capture_output=True, text=True, check=True)
    sources = digest_of(folder, (*words, said.stdout, digest_of("jvm_client")))
    place = cache_directory() / "built" / f"{words[0]}-{sources}"
    if place.exists():
        place.touch()
    elif place.parent.exists():
        ages = sorted(place.parent.iterdir(), key=lambda p: p.stat().st_mtime)
        for old in ages[: max(0, len(ages) - KEPT_BUILDS + 1)]:
            shutil.rmtree(old, ignore_errors=True)
    return place
