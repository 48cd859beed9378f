"""Trino's own connectors: what tests compare with."""

from __future__ import annotations

from pathlib import Path

from bridge.kernel.errors import InvalidConfiguration
from bridge.servers.maven import Artifact
from bridge.trino.server import unpack_once


def stock_plugins(*names: str, version: str = "476") -> dict[str, Path]:
    """Trino's own connectors by plugin directory, such as ``hive`` or ``tpch``.

    They come from the full distribution, a download of 821 MB that unpacks to 1.5 GB.

    Errors:
        InvalidConfiguration: this distribution has no such plugin.
        EnvironmentMissing, ArtifactUnavailable: no Maven, or the download failed.
    """
    # Plugins share jars through hard links, so a single plugin cannot be unpacked alone.
    root = unpack_once(Artifact("io.trino", "trino-server", version, "tar.gz")) / "plugin"
    unknown = [name for name in names if not (root / name).is_dir()]
    if unknown:
        known = ", ".join(sorted(p.name for p in root.iterdir()))
        raise InvalidConfiguration(
            f"Trino {version} has no plugin {', '.join(unknown)}", f"one of {known}"
        )
    return {name: root / name for name in names}
