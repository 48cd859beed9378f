"""Bloom filters that Hudi's own class wrote, and what it says of keys that are not in them."""

from __future__ import annotations

import base64

import pytest

from bridge.formats.hudi.bloom_filters import BloomFilter
from tests.support.hudi_keys import lacks

TEXT = b"/////wAAAAcBAAAAJwAAAAQAAAAGAAAAAv////8AAAAHAQAAACfm7x2dfv////8AAAAHAQAAACeGqrwXPw=="
"""Of ten keys, by BloomFilterFactory.createBloomFilter(4, 0.01, 8, "DYNAMIC_V0"): two rows."""
KEYS = (
    *("k1", "id:7,day:2024-01-01", "é", "\u00df\0\\$", "\U0001f600", "日本語キー"),
    *("abc", "abcd", "abcé", "ÿÿÿ"),
)
MAYBE = {
    "n": [
        22,
        73,
        76,
        104,
        118,
        135,
        139,
        140,
        141,
        160,
        168,
        170,
        173,
        176,
        187,
        196,
        210,
        245,
        254,
        260,
        264,
        271,
        279,
        283,
        295,
        297,
        306,
        312,
        328,
        344,
        362,
        368,
    ],
    "ñ": [
        1,
        16,
        21,
        36,
        40,
        49,
        61,
        66,
        81,
        82,
        85,
        88,
        102,
        119,
        124,
        163,
        168,
        185,
        193,
        194,
        209,
        214,
        237,
        240,
        251,
        266,
        267,
        270,
        284,
        291,
        303,
        327,
        329,
        332,
        343,
        348,
        367,
        368,
        369,
        380,
        392,
    ],
}
"""Numbers below 400 which, after the letter, Hudi takes for keys of the filter."""


def test_the_filter_has_the_keys_and_says_of_others_what_hudi_says() -> None:
    filter = BloomFilter.parse(TEXT)
    assert not any(lacks(filter, key) for key in KEYS)
    for letter, maybe in MAYBE.items():
        found = [n for n in range(400) if not lacks(filter, f"{letter}{n}")]
        assert found == maybe
    assert not lacks(filter, "")


@pytest.mark.parametrize("at", range(len(base64.b64decode(TEXT)) + 1))
def test_a_filter_that_was_cut_is_none(at: int) -> None:
    content = base64.b64decode(TEXT)
    if at == len(content):
        content, at = content + b"\0", len(content) + 1
    with pytest.raises(ValueError, match="bloom filter"):
        BloomFilter.parse(base64.b64encode(content[:at]))


@pytest.mark.parametrize("place", [0, 7, 8, 12, 20, 24, 28, 32, 36])
@pytest.mark.parametrize("byte", [0x7F, 0x80])
def test_a_filter_with_another_head_is_none(place: int, byte: int) -> None:
    """Its version, hashes, their type, size and rows, and the first row's version and size."""
    content = bytearray(base64.b64decode(TEXT))
    content[place] = byte
    if place in (20,):  # keys of the last row, which are of no interest
        BloomFilter.parse(base64.b64encode(content))
        return
    with pytest.raises(ValueError, match="bloom filter"):
        BloomFilter.parse(base64.b64encode(content))


def test_a_text_that_is_no_base64_is_none() -> None:
    with pytest.raises(ValueError):
        BloomFilter.parse(b"*")
