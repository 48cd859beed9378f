"""Fields of lines, cut as opencsv 2.3 cuts them. Hive runs this library, and Trino repeats it.

Regular lines are cut by Arrow's reader. In regular lines a quoted field is a whole field, and a
quote inside of it is doubled. All other lines, with escape characters or quotes in odd places, are
cut one by one. Lines may have any number of fields: fields that are missing are NULL, and an empty
line has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pacsv

from bridge.formats.lines.lines import ambiguous_file_error
from bridge.kernel.errors import FileAmbiguous

_MOST_FIELDS = 20_000
_MOST_WIDTHS = 100
_ONE_BY_ONE = 32 * 1024 * 1024
"""Bytes of a file's lines that are cut one by one; more would take too long."""
_NO_SPACE = "\x85\xa0\u2007\u202f"
"""Characters that are white space for Python and not for Java."""
Mask = npt.NDArray[np.bool_]
BytePlaces = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FieldSyntax:
    """How lines are cut into fields.

    Attributes:
        quote: empty if fields are never quoted. Lines that are not regular are ambiguous then.
        escape: empty if there is none.
        null: the text for NULL.
    """

    separator: str
    quote: str = ""
    escape: str = ""
    null: str | None = None


class FieldCutter:
    """Cuts the lines of one file.

    Args:
        places: of the fields that are wanted, ascending.
    """

    def __init__(self, uri: str, syntax: FieldSyntax, places: Sequence[int]) -> None:
        self._uri, self._syntax = uri, syntax
        self._places = list(places)
        self._one_by_one = 0

    def cut(self, block: bytes) -> pa.Table:
        """The wanted fields of whole lines, as text, in columns named by their places.

        Errors: FileAmbiguous.
        """
        syntax = self._syntax
        if syntax.quote:
            found = self._regular(block)
            return self._odd(block) if found is None else found
        if syntax.escape and syntax.escape.encode() in block:
            raise ambiguous_file_error(
                self._uri, f"it holds the escape character {syntax.escape!r}"
            )
        if block.startswith(b"\n") or b"\n\n" in block:
            raise ambiguous_file_error(self._uri, "it holds an empty line")
        found = self._regular(block)
        if found is None:
            raise ambiguous_file_error(self._uri, "its lines have different numbers of fields")
        return found

    def _regular(self, block: bytes) -> pa.Table | None:
        """None if a line is not regular, or has another number of fields than the first."""
        syntax = self._syntax
        if syntax.escape and syntax.escape.encode() in block:
            return None
        if block.startswith(b"\n") or b"\n\n" in block:
            return None
        quoted = bool(syntax.quote) and syntax.quote.encode() in block
        if quoted and not well_quoted(block, syntax.quote, syntax.separator):
            return None
        line = block[: block.index(b"\n")]
        if quoted:  # separators between quotes do not count
            line = b"".join(line.split(syntax.quote.encode())[::2])
        return self._cut_alike(block, line.count(syntax.separator.encode()) + 1, quoted)

    def _cut_alike(self, block: bytes, width: int, quoted: bool) -> pa.Table | None:
        """Regular lines of one number of fields; None if it is not theirs."""
        if width > _MOST_FIELDS:
            raise ambiguous_file_error(self._uri, f"a line has {width} fields")
        names = [str(i) for i in range(width)]
        chosen = [str(place) for place in self._places if place < width] or ["0"]
        nulls = [] if self._syntax.null is None else [self._syntax.null]
        try:
            table = pacsv.read_csv(
                pa.BufferReader(block),
                pacsv.ReadOptions(use_threads=False, column_names=names, block_size=len(block) + 1),
                pacsv.ParseOptions(
                    delimiter=self._syntax.separator,
                    quote_char=self._syntax.quote if quoted else False,
                    double_quote=True,
                    newlines_in_values=False,
                    ignore_empty_lines=False,
                ),
                pacsv.ConvertOptions(
                    column_types=dict.fromkeys(chosen, pa.string()),
                    include_columns=chosen,
                    check_utf8=False,  # all of the block is checked
                    null_values=nulls,
                    strings_can_be_null=bool(nulls),
                ),
            )
        except pa.ArrowInvalid:
            return None
        return self._with_all(table) if table.num_rows == block.count(b"\n") else None

    def _with_all(self, table: pa.Table) -> pa.Table:
        """With a column of NULLs for each wanted field that the lines lack."""
        if len(table.column_names) == len(self._places) and self._places:
            return table
        held = set(table.column_names)
        nulls = pa.nulls(table.num_rows, pa.string())
        columns = {
            str(place): table.column(str(place)) if str(place) in held else nulls
            for place in self._places
        }
        return pa.table(columns) if columns else table

    def _odd(self, block: bytes) -> pa.Table:
        """Lines of any kind, cut in groups of lines that are alike."""
        raw = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(raw == ord("\n"))
        starts = np.concatenate(([0], ends[:-1] + 1))
        lines = _Lines(raw, starts, ends, self._syntax)
        empty, odd = lines.empty, lines.odd
        tables: list[pa.Table] = []
        numbers: list[BytePlaces] = []
        if empty.any():
            numbers.append(np.flatnonzero(empty))
            tables.append(self._rows([[]] * len(numbers[-1])))
        if odd.any():
            numbers.append(np.flatnonzero(odd))
            tables.append(self._rows(self._each(block, starts, ends, numbers[-1])))
        rest = ~(empty | odd)
        widths = np.unique(lines.widths[rest]).tolist()
        if len(widths) > _MOST_WIDTHS:
            raise ambiguous_file_error(
                self._uri, f"its lines have {len(widths)} different numbers of fields"
            )
        for width in widths:
            chosen = rest & (lines.widths == width)
            part = raw[np.repeat(chosen, ends - starts + 1) & lines.kept]
            text = part.tobytes()
            table = self._cut_alike(text, width, self._syntax.quote.encode() in text)
            if table is None:
                raise self._strange()
            numbers.append(np.flatnonzero(chosen))
            tables.append(table)
        whole = pa.concat_tables(tables)
        return whole.take(pa.array(np.argsort(np.concatenate(numbers), kind="stable")))

    def _each(
        self, block: bytes, starts: BytePlaces, ends: BytePlaces, chosen: BytePlaces
    ) -> list[list[str]]:
        self._one_by_one += int((ends[chosen] - starts[chosen]).sum())
        if self._one_by_one > _ONE_BY_ONE:
            raise ambiguous_file_error(
                self._uri, "too many of its lines have quotes or escapes in odd places"
            )
        return [cut_line(block[starts[i] : ends[i]].decode(), self._syntax) for i in chosen]

    def _rows(self, rows: Sequence[Sequence[str]]) -> pa.Table:
        null = self._syntax.null
        columns = {}
        for place in self._places or [0]:
            values = [row[place] if place < len(row) else None for row in rows]
            columns[str(place)] = pa.array([None if v == null else v for v in values], pa.string())
        return pa.table(columns)

    def _strange(self) -> FileAmbiguous:
        return ambiguous_file_error(self._uri, "its lines are cut in different ways")


class _Lines:
    """What kinds of lines there are.

    Attributes:
        empty: lines without a character.
        odd: lines that must be cut one by one.
        widths: the number of fields of each other line.
        kept: characters that remain: an escape character that stands alone says nothing.
    """

    def __init__(
        self, raw: npt.NDArray[np.uint8], starts: BytePlaces, ends: BytePlaces, syntax: FieldSyntax
    ) -> None:
        count = len(ends)
        self.empty: Mask = starts == ends
        quotes = np.flatnonzero(raw == ord(syntax.quote))
        line = np.searchsorted(ends, quotes)
        first = np.searchsorted(quotes, starts)
        has_quotes = np.bincount(line, minlength=count) > 0
        self.odd: Mask = np.zeros(count, np.bool_)
        opening = (np.arange(len(quotes)) - first[line]) % 2 == 0
        self.odd[line[~_in_place(raw, quotes, opening, syntax.separator)]] = True
        self.odd[np.bincount(line, minlength=count) % 2 == 1] = True
        escapes = np.flatnonzero(raw == ord(syntax.escape))
        where = np.searchsorted(ends, escapes)
        pairs = np.flatnonzero(np.diff(escapes) == 1)
        self.odd[where[pairs]] = True
        self.odd |= (np.bincount(where, minlength=count) > 0) & has_quotes
        # Arrow leaves out a byte order mark where a group of lines begins with one.
        marks = np.flatnonzero((raw[:-2] == 0xEF) & (raw[1:-1] == 0xBB) & (raw[2:] == 0xBF))
        self.odd[np.searchsorted(ends, marks)] = True
        self.kept: Mask = raw != ord(syntax.escape)
        separators = np.flatnonzero(raw == ord(syntax.separator))
        at = np.searchsorted(ends, separators)
        inside = (np.searchsorted(quotes, separators) - first[at]) % 2 == 1
        self.widths = np.bincount(at[~inside], minlength=count) + 1


def well_quoted(block: bytes, quote: str, separator: str) -> bool:
    """Whether quotes enclose whole fields, and are doubled inside of them."""
    raw = np.frombuffer(block, np.uint8)
    at = np.flatnonzero(raw == ord(quote))
    if len(at) % 2:
        return False
    opening = np.arange(len(at)) % 2 == 0
    if not _in_place(raw, at, opening, separator).all():
        return False
    ends = np.flatnonzero(raw == ord("\n"))
    return not (np.searchsorted(at, ends) % 2).any()  # no line ends between a pair of quotes


def _in_place(
    raw: npt.NDArray[np.uint8], quotes: BytePlaces, opening: Mask, separator: str
) -> Mask:
    """Which quotes open or close a field, or are half of a doubled quote."""
    if not len(quotes):
        return np.empty(0, np.bool_)
    around = np.zeros(256, np.bool_)
    around[[ord(separator), ord("\n")]] = True
    next_to = np.diff(quotes) == 1
    doubled = np.where(opening, np.append(False, next_to), np.append(next_to, False))
    before = (quotes == 0) | around[raw[np.maximum(quotes - 1, 0)]]
    after = around[raw[np.minimum(quotes + 1, len(raw) - 1)]]  # each block ends with LF
    return np.where(opening, before, after) | doubled


def cut_line(line: str, syntax: FieldSyntax) -> list[str]:
    """The fields of one line. Text after a quote that stays open is no field."""
    fields: list[str] = []
    field: list[str] = []
    quoted = begun = False
    at, last = 0, len(line) - 1
    while at <= last:
        character = line[at]
        following = line[at + 1] if at < last else ""
        if character == syntax.escape:
            if (quoted or begun) and following and following in (syntax.quote, syntax.escape):
                field.append(following)
                at += 1
        elif character == syntax.quote:
            if (quoted or begun) and following == syntax.quote:
                field.append(following)
                at += 1
            else:
                inside = _place(line, at) > 2 and line[at - 1] != syntax.separator
                if inside and following and following != syntax.separator:
                    if field and all(map(_is_space, field)):
                        field.clear()
                    else:
                        field.append(character)
                quoted = not quoted
            begun = not begun
        elif character == syntax.separator and not quoted:
            fields.append("".join(field))
            field.clear()
            begun = False
        else:
            field.append(character)
            begun = True
        at += 1
    if not quoted:
        fields.append("".join(field))
    return fields


def _place(line: str, at: int) -> int:
    """The place of a character near the line's beginning, as Java counts."""
    return at if at > 2 else at + sum(character > "\uffff" for character in line[:at])


def _is_space(character: str) -> bool:
    return character.isspace() and character not in _NO_SPACE
