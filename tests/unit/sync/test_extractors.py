from __future__ import annotations

import pytest

from bridge.kernel.errors import InvalidConfiguration
from bridge.sync import extractors
from bridge.sync.extractors import UnparsableDirectory, find_extractor


@pytest.mark.parametrize(
    ("name", "keys", "directory", "values"),
    [
        ("hive", (), "year=2024/m=3", {"year": "2024", "m": "3"}),
        ("hive", (), "Year=2024", {"year": "2024"}),
        ("hive", (), "p=a%2Fb=c", {"p": "a/b=c"}),
        ("hive", (), "p=a%252Fb", {"p": "a%2Fb"}),
        ("hive", (), "p=__HIVE_DEFAULT_PARTITION__", {"p": None}),
        ("hive", (), "p=%5F_HIVE_DEFAULT_PARTITION__", {"p": None}),
        ("hive", (), "", {}),
        ("hive", ("p",), "p=1", {"p": "1"}),
        ("single", ("city",), "new york", {"city": "new york"}),
        ("single", ("city",), "city=paris", {"city": "city=paris"}),
        ("multi", ("y", "city"), "2024/paris", {"y": "2024", "city": "paris"}),
        ("month", (), "2024/03", {"dt": "2024-03"}),
        ("day", ("d",), "2024/02/29", {"d": "2024-02-29"}),
        ("day", (), "year=2024/month=02/day=29", {"dt": "2024-02-29"}),
        ("hour", (), "2024/03/08/23", {"dt": "2024-03-08-23"}),
        ("none", (), "", {}),
    ],
)
def test_values(
    name: str, keys: tuple[str, ...], directory: str, values: dict[str, str | None]
) -> None:
    assert find_extractor(name, keys)(directory) == values


@pytest.mark.parametrize(
    ("name", "keys", "directory", "why"),
    [
        ("hive", (), "p=1/odd", "'odd' is not named key=value"),
        ("hive", (), "=1", "not named"),
        ("hive", (), "/day=1", "empty part"),
        ("hive", (), "day=1/", "empty part"),
        ("hive", (), "/", "empty part"),
        ("hive", (), "p=", "empty"),
        ("hive", (), "p=1/P=2", "twice"),
        ("hive", ("p",), "q=1", "its keys are q, not p"),
        ("single", ("a",), "x/y", "2 levels, not 1"),
        ("multi", ("a", "b"), "", "0 levels, not 2"),
        ("day", (), "2024/02/30", "no such date"),
        ("day", (), "2024/2/3", "not yyyy/mm/dd"),
        ("day", (), "٢٠٢٤/٠٢/٠٣", "not yyyy/mm/dd"),
        ("hour", (), "2024/02/03/24", "no such date"),
        ("month", (), "2024/13", "no such date"),
        ("none", (), "sub", "below the root"),
    ],
)
def test_what_is_no_partition(name: str, keys: tuple[str, ...], directory: str, why: str) -> None:
    with pytest.raises(UnparsableDirectory, match=why):
        find_extractor(name, keys)(directory)


@pytest.mark.parametrize(
    ("name", "keys", "why"),
    [
        ("hvie", (), "one of hive"),
        ("single", (), "--partition-keys"),
        ("single", ("a", "b"), "use multi"),
        ("day", ("a", "b"), "one key"),
        ("none", ("a",), "no partition keys"),
        ("multi", ("a", "A"), "twice"),
    ],
)
def test_wrong_requests(name: str, keys: tuple[str, ...], why: str) -> None:
    with pytest.raises(InvalidConfiguration, match=why):
        find_extractor(name, keys)


class _Entry:
    def __init__(self, name: str, made: object) -> None:
        self.name, self.value, self._made = name, f"package:{name}", made

    def load(self) -> object:
        if isinstance(self._made, Exception):
            raise self._made
        return self._made


def test_extractors_of_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    def weeks(keys: tuple[str, ...]) -> object:
        return lambda directory: {keys[0]: directory.removeprefix("week-")}

    entries = [_Entry("weeks", weeks), _Entry("broken", ImportError("no such module"))]
    monkeypatch.setattr(extractors, "entry_points", lambda group: entries)
    assert find_extractor("weeks", ("w",))("week-07") == {"w": "07"}
    with pytest.raises(InvalidConfiguration, match=r"'broken' \(package:broken\) does not load"):
        find_extractor("broken")
    with pytest.raises(InvalidConfiguration, match="hour, none, broken, weeks"):
        find_extractor("months")
