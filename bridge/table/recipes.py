"""How the table declares its files, and which index entries were made under that declaration.

See `bridge.formats.lines.recipe`. An entry whose digest is not that of the file's declaration today
says nothing: a property, a type or the order of columns has changed since.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bridge.formats.lines.recipe import FIELDS, Recipe
from bridge.formats.registry import file_formats
from bridge.table.model import Column
from bridge.table.slices import ReaderSpec, SliceBatch

PARTIAL = "~"
"""Ends the digest of an entry that lacks columns, which were declared anew since it was made."""
OWN_COLUMNS = "skipbridge.partition-columns"
"""A property of recipes that no reader understands: engines read such files by the partition's own
columns, and convert the values."""


def recipe_of(spec: ReaderSpec, columns: Sequence[Column]) -> Recipe | None:
    """How the table declares files that are read so; None if the files say it themselves.

    Args:
        columns: the table's data columns in order.
    """
    known = file_formats().get(spec.base or spec.format)
    if known is None or known.chunks is None:
        return None
    properties = spec.properties
    if spec.columns is not None and FIELDS not in spec.property_map:
        properties = (*properties, (OWN_COLUMNS, ",".join(str(c.type) for c in spec.columns)))
    declared = tuple((column.name.lower(), column.type) for column in columns)
    return Recipe(known.name, properties, declared)


def drop_foreign_ordinals(slices: SliceBatch, columns: Sequence[Column]) -> SliceBatch:
    """The slices, without ordinals where the index's entry was made under another declaration.

    Args:
        columns: the table's data columns in order.
    """
    index = slices.index
    if index is None or not len(slices):
        return slices
    recipes = [recipe_of(spec, columns) for spec in slices.readers]
    wanted = ["" if recipe is None else recipe.digest for recipe in recipes]
    if not index.recipes or (len(set(wanted)) == 1 and index.recipes == (wanted[0],)):
        return slices
    number = {digest: i for i, digest in enumerate(dict.fromkeys(wanted))}
    expected = np.array([number[digest] for digest in wanted], np.int32)
    of_file = expected[0] if slices.reader is None else expected[slices.reader]
    ordinals = slices.ordinals
    made = np.array([number.get(whole_digest(one), -1) for one in index.recipes], np.int32)
    held = made[index.recipe[np.maximum(ordinals, 0)]]
    same = (held == of_file) | (ordinals < 0)
    return slices if same.all() else replace(slices, ordinals=np.where(same, ordinals, -1))


def whole_digest(held: str) -> str:
    """The digest of an entry's declaration, also of an entry that lacks columns."""
    return held.removesuffix(PARTIAL)
