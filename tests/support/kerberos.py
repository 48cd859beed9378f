"""A key distribution centre's programs and the Python module ``kerberos``, without being root.

Those of the machine if it has them; else Debian's packages, unpacked into the cache, and the module
compiled there against their headers. Nothing is installed.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bridge.servers.maven import build_once, cache_directory

PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
_MODULE = "kerberos==1.3.1"
_PACKAGES = (
    "krb5-kdc",
    "krb5-admin-server",
    "krb5-user",
    "libkadm5srv-mit12",
    "libkadm5clnt-mit12",
    "libkdb5-10",
    "libgssrpc4",
    "libverto1",
    "libverto-libev1",
    "libev4",
    # To compile the module; the library itself, libgssapi_krb5.so.2, is the machine's.
    "libkrb5-dev",
    "krb5-multidev",
    "comerr-dev",
)
_SYSTEM = f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin"
_CONFIG = """\
#!/bin/sh
case "$1" in
  --libs) echo "-l:libgssapi_krb5.so.2 -l:libkrb5.so.3" ;;
  *) echo "-I{include}/mit-krb5 -I{include}" ;;
esac
"""


class KerberosMissing(Exception):
    """Why there is none."""


@dataclass(frozen=True, slots=True)
class Kerberos:
    """Where it is.

    Attributes:
        programs: by name.
        environment: that the programs need.
        profile: more lines of the centre's kdc.conf.
        path: of the module; None if it is installed.
    """

    programs: Mapping[str, str]
    environment: Mapping[str, str] = field(default_factory=dict)
    profile: str = ""
    path: Path | None = None


def find_kerberos() -> Kerberos:
    """Errors: KerberosMissing: neither installed nor to be had; the message says why."""
    installed = {name: shutil.which(name, path=_SYSTEM) for name in PROGRAMS}
    if all(installed.values()) and importlib.util.find_spec("kerberos"):
        return Kerberos({name: path or "" for name, path in installed.items()})
    for program in ("apt-get", "dpkg", "gcc"):
        if shutil.which(program) is None:
            raise KerberosMissing(f"not installed, and without {program} not to be had")
    tag = f"{_MODULE.replace('==', '-')}-{sysconfig.get_config_var('SOABI')}"
    try:
        place = build_once(cache_directory() / "kerberos" / tag, _build)
    except subprocess.CalledProcessError as error:
        said = [line for line in (error.stderr or error.stdout).splitlines() if line.strip()]
        raise KerberosMissing(f"{error.cmd[0]} failed: {said[-1] if said else ''}") from error
    root = place / "root"
    found = {
        name: str(
            next(p for p in (root / "usr/sbin" / name, root / "usr/bin" / name) if p.exists())
        )
        for name in PROGRAMS
    }
    (plugins,) = root.glob("usr/lib/*/krb5/plugins/kdb")
    return Kerberos(
        found,
        {"LD_LIBRARY_PATH": str(plugins.parents[2])},
        f"[dbmodules]\n  db_module_dir = {plugins}\n",
        place / "site",
    )


def _build(place: Path) -> None:
    debs, root = place / "debs", place / "root"
    debs.mkdir(parents=True)
    try:
        _run("apt-get", "download", *_PACKAGES, directory=debs)
    except subprocess.CalledProcessError:
        if os.geteuid() != 0:
            raise
        _run("apt-get", "update", directory=debs)  # a fresh container has no lists of packages
        _run("apt-get", "download", *_PACKAGES, directory=debs)
    for file in debs.glob("*.deb"):
        _run("dpkg", "-x", str(file), str(root), directory=place)
    shutil.rmtree(debs)
    config = place / "bin" / "krb5-config"
    config.parent.mkdir()
    config.write_text(_CONFIG.format(include=root / "usr" / "include"))
    config.chmod(0o755)
    _run(
        sys.executable,
        *("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"),
        *("--target", str(place / "site"), _MODULE),
        directory=place,
        path=f"{config.parent}:{os.environ['PATH']}",
    )


def _run(*command: str, directory: Path, path: str = os.environ["PATH"]) -> None:
    environment = {**os.environ, "PATH": path, "LC_ALL": "C"}
    subprocess.run(
        command, cwd=directory, env=environment, check=True, capture_output=True, text=True
    )
