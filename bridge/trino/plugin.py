"""Builds the Trino connector; its generator is beside (checkout) or inside (wheel) this package."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from bridge.kernel.errors import EnvironmentMissing, UserError
from bridge.servers.java import find_jdk

Say = Callable[[str], None]


class PluginBuildFailed(UserError):
    code = "PLUGIN_BUILD_FAILED"


def _generator(module: str) -> ModuleType:
    """A module of the generator; in a wheel it is ``bridge._trino_plugin_gen``."""
    import bridge

    inside = Path(bridge.__file__).parent / "_trino_plugin_gen"
    if inside.is_dir():
        return importlib.import_module(f"bridge._trino_plugin_gen.{module}")
    checkout = Path(bridge.__file__).parent.parent
    if not (checkout / "trino_plugin_gen" / "build.py").is_file():
        raise EnvironmentMissing(
            "the connector's template is not installed", "reinstall skipbridge"
        )
    if str(checkout) not in sys.path:
        sys.path.insert(0, str(checkout))
    return importlib.import_module(f"trino_plugin_gen.{module}")


def supported_versions() -> list[str]:
    return [str(v) for v in _generator("versions").supported()]


def java_release(version: str) -> int:
    """The Java release that a Trino version needs.

    Errors:
        PluginBuildFailed: the version is unknown.
    """
    return int(_target(version).java_release)


def _target(version: str) -> Any:
    versions = _generator("versions")
    try:
        return versions.target(int(version))
    except (ValueError, versions.UnsupportedVersion) as e:
        raise PluginBuildFailed(
            f"no connector for Trino {version!r}", f"known: {', '.join(supported_versions())}"
        ) from e


def require_buildable(version: str, from_server: Path | None) -> None:
    """Checks, in no time, what a build is asked to do.

    Errors:
        PluginBuildFailed: the version is unknown, or the server is not one of it.
    """
    chosen, build = _target(version), _generator("build")
    if from_server is not None:
        try:
            build.require_server(chosen.version, from_server)
        except build.BuildFailed as e:
            raise PluginBuildFailed(str(e), _remedy(e, from_server)) from e


def build_plugin(
    version: str,
    to: Path,
    from_server: Path | None,
    name: str,
    say: Say,
    stores: Sequence[str] = (),
    *,
    hudi: bool = False,
    hive: bool = False,
) -> Path:
    """Builds a plugin directory.

    Args:
        stores: of ``hdfs``, ``gcs`` and ``azure``, to read besides S3 and local files;
            ``cache`` is Trino's file system cache.
        hudi: adds Hudi's reader, for merge-on-read tables.
        hive: adds Trino's hive connector, for catalogs that replace one of it.

    Errors:
        PluginBuildFailed: the version or name is unknown, or the compiler failed.
        EnvironmentMissing: there is no JDK of the needed release.
    """
    chosen = _target(version)
    jdk = find_jdk(chosen.java_release)
    generate, build = _generator("generate"), _generator("build")
    try:
        made: Path = build.build(
            int(version),
            to,
            jdk.home,
            from_server=from_server,
            connector_name=name,
            progress=say,
            stores=stores,
            hudi=hudi,
            hive=hive,
        )
    except (generate.InvalidName, build.BuildFailed) as e:
        raise PluginBuildFailed(str(e), _remedy(e, from_server)) from e
    return made


def _remedy(error: Exception, from_server: Path | None) -> str:
    if type(error).__name__ == "InvalidName":
        return "give another --name"
    if from_server is not None:
        return (
            "give the directory of an installed Trino of that version, or leave --from-server out"
        )
    if "io.trino:trino-hdfs" in str(error):
        return (
            "this release's Hadoop client is not in the Maven repository: --from-server takes it "
            "from an installed Trino of that version, or link it, as Trino's reference tells "
            "under Stores"
        )
    if "from an installed Trino" in str(error):
        return "give its directory with --from-server"
    return "read Maven's messages; it needs a JDK, and on the first run the network"
