"""Builds the hooks' jar from the project beside (checkout) or inside (wheel) this package."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from bridge.kernel.errors import EnvironmentMissing, InvalidRequest, UserError
from bridge.metastore.hooks import PLAN_HOOK as PLAN_HOOK
from bridge.servers.java import find_jdk

Say = Callable[[str], None]


class HookBuildFailed(UserError):
    code = "HOOK_BUILD_FAILED"


def _project(module: str) -> ModuleType:
    """A module of the hooks' project; in a wheel it is ``bridge._hive_hooks``."""
    import bridge

    if (Path(bridge.__file__).parent / "_hive_hooks").is_dir():
        return importlib.import_module(f"bridge._hive_hooks.{module}")
    checkout = Path(bridge.__file__).parent.parent
    if not (checkout / "hive_hooks" / "build.py").is_file():
        raise EnvironmentMissing("the hooks' sources are not installed", "reinstall skipbridge")
    if str(checkout) not in sys.path:
        sys.path.insert(0, str(checkout))
    return importlib.import_module(f"hive_hooks.{module}")


def hive_versions() -> list[str]:
    """Hive versions that the hooks compile against, the default first."""
    return list(_project("build").VERSIONS)


def build_jar(version: str, to: Path, say: Say) -> Path:
    """Builds the jar in a directory.

    Errors:
        HookBuildFailed: the version is unknown, or the compiler failed.
        EnvironmentMissing: there is no JDK 17 to 24, or no Maven.
        InvalidRequest: the directory cannot be created.
    """
    build = _project("build")
    if version not in build.VERSIONS:
        raise HookBuildFailed(
            f"no hooks for Hive {version!r}",
            f"known: {', '.join(build.VERSIONS)}; take the nearest of the same major version",
        )
    jdk = find_jdk(17, 24)
    try:
        to.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise InvalidRequest(f"cannot write to {to}: {e.strerror}", "give another path") from e
    try:
        made: Path = build.build(to, jdk.home, version, say)
    except build.MavenMissing as e:
        raise EnvironmentMissing(str(e), "install Maven 3.8 or newer") from e
    except build.BuildFailed as e:
        raise HookBuildFailed(str(e), "see the message above") from e
    return made
