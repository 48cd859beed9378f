"""The compose tour: everything that its files name exists, or is made by a command that they give.

No container is started here. What is inside an image (paths, ports, variables) is listed below, as
the image's own documentation says it.
"""

from __future__ import annotations

import itertools
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import click
import pytest
import yaml

from bridge.app.cli.main import cli
from bridge.app.demo.run import TABLE
from bridge.kernel.config import OPTIONS, load
from hive_hooks.build import jar_name
from tests.support.servers.postgres import DRIVER

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
TOUR = DOCKER / "compose.yaml"
TEXT = TOUR.read_text("utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, Any] = COMPOSE["services"]
COMMANDS = [
    line[1:].strip()
    for line in TEXT.splitlines()
    if re.match(r"#   (mvn|skipbridge|docker) ", line)
]
S3 = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}


@dataclass(frozen=True)
class Image:
    """What an image offers: ports it listens on, variables it reads, directories it has."""

    ports: frozenset[int]
    variables: frozenset[str]
    directories: tuple[str, ...]


HIVE = frozenset({"SERVICE_NAME", "DB_DRIVER", "IS_RESUME", "HADOOP_OPTIONAL_TOOLS", *S3})
IMAGES = {
    "postgres": Image(
        frozenset({5432}),
        frozenset({"POSTGRES_DB", "POSTGRES_USER", "POSTGRES_PASSWORD"}),
        ("/var/lib/postgresql/data",),
    ),
    "apache/hive": Image(
        frozenset({9083, 10000}),
        HIVE,
        ("/opt/hive/conf/", "/opt/hive/lib/", "/opt/hive/data/warehouse"),
    ),
    "minio/minio": Image(
        frozenset({9000, 9001}),
        frozenset({"MINIO_ROOT_USER", "MINIO_ROOT_PASSWORD", *S3}),
        ("/data", "/flights"),
    ),
    "trinodb/trino": Image(
        frozenset({8080}), frozenset(S3), ("/etc/trino/catalog/", "/usr/lib/trino/plugin/")
    ),
    "": Image(frozenset({9527}), frozenset(S3), ("/etc/skipbridge/",)),  # our own
}
_HIVE_PORTS = {"metastore": 9083, "hiveserver2": 10000}
# Properties of Trino's S3 support that the tour sets.
TRINO_S3 = {"s3.endpoint", "s3.region", "s3.path-style-access"}


def image_of(service: dict[str, Any]) -> tuple[str, str]:
    name, _, tag = service.get("image", "").partition(":")
    return name, tag


def mounts() -> Iterator[tuple[str, str, str]]:
    """Service, source and target of what is mounted; the source as a path or a volume's name."""
    for name, service in SERVICES.items():
        for volume in service.get("volumes", []):
            if isinstance(volume, dict):
                assert volume["type"] == "bind" and volume["read_only"]
                # Else Docker would make an empty directory of what is missing.
                assert volume["bind"] == {"create_host_path": False}
                yield name, volume["source"], volume["target"]
            else:
                source, target = volume.split(":")
                yield name, source, target


def made_by_commands() -> set[Path]:
    """What the commands in the file's head make."""
    made: set[Path] = set()
    for command in COMMANDS:
        words = shlex.split(command)
        if words[0] == "mvn":
            given = dict(w[2:].split("=", 1) for w in words if w.startswith("-D"))
            group, artifact, version = given["artifact"].split(":")
            assert words[1] == "dependency:copy" and given["mdep.stripVersion"] == "true"
            assert (group, artifact, version) == (DRIVER.group, DRIVER.name, DRIVER.version)
            made.add(ROOT / given["outputDirectory"] / f"{artifact}.jar")
        elif words[:3] == ["skipbridge", "hive", "jar"]:
            made.add(ROOT / option(words, "--to") / jar_name(option(words, "--hive-version")))
        elif words[:3] == ["skipbridge", "plugin", "build"]:
            made.add(ROOT / option(words, "--to") / "skipbridge")
        elif words == ["skipbridge", "demo"]:
            out = next(p for p in cli.get_command(None, "demo").params if p.name == "out")
            made.add(ROOT / out.default / "warehouse" / "flights")
    return made


def option(words: list[str], name: str) -> str:
    return words[words.index(name) + 1]


def parses(words: list[str]) -> dict[str, Any]:
    """The parameters of a command line of ours; a wrong one fails."""
    command: click.Command = cli
    context = cli.make_context("skipbridge", list(words), resilient_parsing=False)
    rest = [*context._protected_args, *context.args]
    while isinstance(command, click.Group) and (rest or not command.invoke_without_command):
        name, command, rest = command.resolve_command(context, rest)
        assert command is not None and name is not None
        context = command.make_context(name, rest, parent=context)
        rest = [*context._protected_args, *context.args]
    return context.params


def test_compose_takes_the_file() -> None:
    docker = shutil.which("docker")
    if (
        docker is None
        or subprocess.run([docker, "compose", "version"], capture_output=True).returncode
    ):
        pytest.skip("docker compose is not installed")
    done = subprocess.run(
        [docker, "compose", "-f", str(TOUR), "--profile", "*", "config", "--quiet"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_what_is_mounted_exists_or_is_made() -> None:
    made = made_by_commands()
    assert len(made) == 4
    used = set()
    for service, source, target in mounts():
        name, _ = image_of(SERVICES[service])
        assert target.startswith(IMAGES[name].directories), (service, target)
        if source.startswith("${"):
            source = re.fullmatch(r"\$\{TOUR_DATA:-(.+)\}", source)[1]  # type: ignore[index]
        if not source.startswith("."):
            assert source in COMPOSE["volumes"], (service, source)
            continue
        path = (DOCKER / source).resolve()
        if path in made:
            used.add(path)
            continue
        tracked = subprocess.run(["git", "ls-files", "--error-unmatch", path], cwd=ROOT)
        assert path.is_file() and tracked.returncode == 0, (service, source)
    assert used == made, "a command makes what nothing uses"
    used_volumes = {source for _, source, _ in mounts() if not source.startswith((".", "$"))}
    assert used_volumes == set(COMPOSE["volumes"])


def test_our_images_are_built_from_what_there_is() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    sent = {line[1:] for line in ignored if line.startswith("!")}
    for name, service in SERVICES.items():
        if "build" not in service:
            assert image_of(service)[1], f"{name}: the image has no version"
            continue
        context = (DOCKER / service["build"]["context"]).resolve()
        assert context == ROOT
        file = context / service["build"]["dockerfile"]
        text = file.read_text().replace("\\\n", " ")
        for line in text.splitlines():
            if line.startswith("COPY "):
                for source in line.split()[1:-1]:
                    assert (context / source).exists() and source in sent, (file, source)
        assert 'ENTRYPOINT ["skipbridge"]' in text
        for extra in re.findall(r"'\.\[(\w+)\]'", text):
            assert f"\n{extra} = [" in (ROOT / "pyproject.toml").read_text()


def test_services_volumes_and_networks_are_declared() -> None:
    for name, service in SERVICES.items():
        needed = service.get("depends_on", [])
        for other in needed:
            assert other in SERVICES, (name, other)
            condition = needed[other]["condition"] if isinstance(needed, dict) else ""
            if condition == "service_healthy":
                assert "healthcheck" in SERVICES[other], (name, other)
        for network in service.get("networks", []):
            assert network in COMPOSE["networks"]
        mode = service.get("network_mode")
        assert mode in (None, "service:planner")
        assert mode is None or "ports" not in service, "its ports are the planner's"


def test_variables_are_read_by_somebody() -> None:
    for name, service in SERVICES.items():
        for variable in service.get("environment", {}):
            assert variable in IMAGES[image_of(service)[0]].variables, (name, variable)
    # Every reference has a default, so that the commands work as they stand.
    for reference in re.findall(r"(?<!\$)\$\{([^}]*)\}", TEXT):
        assert re.fullmatch(r"[A-Z0-9_]+:-.+", reference), reference
    assert "TOUR_DATA=" in TEXT.split("name: skipbridge")[0]
    # Who reads or writes the store has its keys.
    for name in ("planner", "spark", "metastore", "hiveserver2", "trino", "data"):
        assert set(SERVICES[name]["environment"]) >= S3, name
    store = SERVICES["store"]["environment"]
    assert store["MINIO_ROOT_USER"] == SERVICES["trino"]["environment"]["AWS_ACCESS_KEY_ID"]
    assert store["MINIO_ROOT_PASSWORD"] == SERVICES["trino"]["environment"]["AWS_SECRET_ACCESS_KEY"]


def listening() -> dict[int, str]:
    """Ports of the name space that the services share, by who listens."""
    found: dict[int, str] = {}
    for name, service in SERVICES.items():
        if "profiles" in service or (name != "planner" and "network_mode" not in service):
            continue
        ports = IMAGES[image_of(service)[0]].ports
        if image_of(service)[0] == "apache/hive":
            ports = frozenset({_HIVE_PORTS[service["environment"]["SERVICE_NAME"]]})
        for port in ports:
            assert port not in found, f"{name} and {found.get(port)} both want {port}"
            found[port] = name
    return found


def test_ports_and_addresses_lead_somewhere() -> None:
    here = listening()
    assert here == {
        9527: "planner", 9083: "metastore", 10000: "hiveserver2",
        9000: "store", 9001: "store", 8080: "trino",
    }  # fmt: skip
    for published in SERVICES["planner"]["ports"]:
        address, outside, inside = published.split(":")
        assert address == "127.0.0.1" and outside == inside and int(inside) in here, published
    texts = {path: path.read_text("utf-8") for path in configurations()} | {TOUR: TEXT}
    seen = set()
    for path, text in texts.items():
        for port in re.findall(r"127\.0\.0\.1[:/](\d+)\b(?!:)", text):
            assert int(port) in here, (path, port)
            seen.add(int(port))
        for host, port in re.findall(r"//([a-z]+):(\d+)", text):
            assert int(port) in IMAGES[image_of(SERVICES[host])[0]].ports, (path, host, port)
            assert set(SERVICES[host]["networks"]) & set(SERVICES["planner"]["networks"])
    assert {9527, 9083, 9000} <= seen
    assert SERVICES["store"]["command"] == "server /data --address :9000 --console-address :9001"


def configurations() -> list[Path]:
    return [
        path
        for path in DOCKER.rglob("*")
        if path.suffix in (".toml", ".xml", ".properties") and "lib" not in path.parts
    ]


def properties() -> dict[str, str]:
    lines = (DOCKER / "trino" / "catalog" / "bridge.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def site() -> dict[str, str]:
    tree = ElementTree.parse(DOCKER / "hive" / "hive-site.xml")
    return {p.findtext("name", ""): p.findtext("value", "") for p in tree.iter("property")}


def test_all_speak_of_one_store_one_metastore_and_one_planner() -> None:
    config = load(file=DOCKER / "planner" / "config.toml")
    catalog, hive = properties(), site()
    endpoint = config.text("storage.endpoint")
    assert endpoint == catalog["s3.endpoint"] == hive["fs.s3a.endpoint"] != ""
    assert config.flag("storage.allow_http") and endpoint.startswith("http://")
    region = config.text("storage.region")
    assert region == catalog["s3.region"] == hive["fs.s3a.endpoint.region"] != ""
    assert catalog["s3.path-style-access"] == hive["fs.s3a.path.style.access"] == "true"
    planner = f"{config.text('service.host')}:{config.text('service.port')}"
    assert planner == catalog["skipbridge.planner"] == hive["skipbridge.planner"]
    assert config.text("metastore.uri") == hive["hive.metastore.uris"]
    database = SERVICES["postgres"]["environment"]
    url = hive["javax.jdo.option.ConnectionURL"]
    assert url == f"jdbc:postgresql://postgres:5432/{database['POSTGRES_DB']}"
    assert hive["javax.jdo.option.ConnectionUserName"] == database["POSTGRES_USER"]
    assert hive["javax.jdo.option.ConnectionPassword"] == database["POSTGRES_PASSWORD"]
    for service in ("metastore", "hiveserver2"):
        held = [t for s, source, t in mounts() if s == service and source == "warehouse"]
        assert held == [hive["hive.metastore.warehouse.dir"]]


def test_hive_has_every_property_that_its_page_names() -> None:
    page = (ROOT / "docs/how-to/hive.md").read_text("utf-8")
    told = re.findall(r"^<property><name>(.+)</name><value>(.+)</value></property>$", page, re.M)
    assert len(told) == 3
    assert set(told) <= set(site().items())


def test_the_catalogs_properties_are_known() -> None:
    java = "trino_plugin_gen/template/src/main/java/io/skipbridge/trino/BridgeConfig.java"
    known = set(re.findall(r'"(skipbridge\.[\w.-]+)"', (ROOT / java).read_text()))
    known |= {"connector.name"} | TRINO_S3
    assert set(properties()) <= known
    assert set(properties()) >= TRINO_S3


def test_settings_of_the_planner_are_settings() -> None:
    config = load(file=DOCKER / "planner" / "config.toml")
    assert any(config.setting(o.key).origin.endswith("config.toml") for o in OPTIONS)


def test_commands_are_those_of_the_tools() -> None:
    told = [shlex.split(c) for c in COMMANDS]
    for words in told:
        if words[0] == "skipbridge":
            parses(words[1:])
        elif words[0] == "docker":
            assert words[1:4] == ["compose", "-f", "docker/compose.yaml"], words
    targets = {
        word for words in told if words[0] == "docker" for word in words[4:] if word in SERVICES
    }
    jobs = {n for n, s in SERVICES.items() if s.get("profiles") == ["jobs"]}
    assert targets == jobs | {"trino"}
    # The versions of what is built are those of the images that load it.
    for service, command, flag in (
        ("trino", "plugin", "--trino-version"),
        ("hiveserver2", "hive", "--hive-version"),
    ):
        (words,) = (w for w in told if w[:2] == ["skipbridge", command])
        assert image_of(SERVICES[service])[1] == option(words, flag)
    for service in ("planner", "spark"):
        words = SERVICES[service]["command"]
        target = words[words.index("--config") + 1]
        assert any(s == service and t == target for s, _, t in mounts())
        read = [*words]
        read[words.index("--config") + 1] = str(DOCKER / "planner" / "config.toml")
        parses(read)
    spark = parses(SERVICES["spark"]["command"][2:])
    assert spark["name"] == TABLE
    bucket = spark["location"].removeprefix("s3a://")
    (script,) = SERVICES["data"]["command"]
    assert f"/flights tour/{bucket}\n" in script and f"tour/{bucket.split('/')[0]}\n" in script
    schema = TABLE.partition(".")[0]
    (shell,) = (w for w in told if "exec" in w)
    assert shell[-2:] == ["--schema", schema]
    catalogs = {Path(t).stem for s, _, t in mounts() if "/etc/trino/catalog/" in t}
    assert option(shell, "--catalog") in catalogs


def test_nothing_is_left_to_the_latest_version() -> None:
    tags = [image_of(s) for s in SERVICES.values() if "image" in s]
    assert all(tag and tag != "latest" for _, tag in tags)
    for (name, tag), (other, another) in itertools.combinations(tags, 2):
        assert name != other or tag == another
