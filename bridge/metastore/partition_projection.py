"""A metastore's client that can leave out, while it decodes, what readers of files do not ask for.

Before 4.0 a metastore sends each partition whole. Most of that are the columns, once more for each
partition: to make objects of them takes longer than everything else here. A field without a
specification is passed over by Thrift's decoder.
"""

from __future__ import annotations

from typing import Any

from thrift.Thrift import TApplicationException, TMessageType

from bridge.metastore._gen import ThriftHiveMetastore, ttypes

_PLACE = frozenset({"location", "inputFormat", "outputFormat", "serdeInfo"})


def _only(spec: tuple[Any, ...], names: frozenset[str]) -> tuple[Any, ...]:
    return tuple(f if f is not None and f[2] in names else None for f in spec)


def _within(field: tuple[Any, ...], inner: Any) -> tuple[Any, ...]:
    return (*field[:3], inner, *field[4:])


_DESCRIPTOR = _only(ttypes.StorageDescriptor.thrift_spec, _PLACE)
_PARTITION = tuple(
    _within(f, [ttypes.StorageDescriptor, _DESCRIPTOR]) if f is not None and f[2] == "sd" else f
    for f in _only(ttypes.Partition.thrift_spec, frozenset({"values", "sd"}))
)


class _Places(ThriftHiveMetastore.get_partitions_by_names_result):  # type: ignore[misc]
    """The generated answer; of each partition its values and where its files lie."""

    _list, *_errors = ThriftHiveMetastore.get_partitions_by_names_result.thrift_spec
    thrift_spec = (
        _within(_list, (_list[3][0], [ttypes.Partition, _PARTITION], _list[3][2])),
        *_errors,
    )


class PartitionProjectionClient(ThriftHiveMetastore.Client):  # type: ignore[misc]
    """The generated client and one method more."""

    def get_partition_places_by_names(
        self, db_name: str, tbl_name: str, names: list[str]
    ) -> list[ttypes.Partition]:
        """``get_partitions_by_names``; what is not needed to read files is None."""
        self.send_get_partitions_by_names(db_name, tbl_name, names)
        _, kind, _ = self._iprot.readMessageBegin()
        if kind == TMessageType.EXCEPTION:
            failure = TApplicationException()
            failure.read(self._iprot)
            self._iprot.readMessageEnd()
            raise failure
        result = _Places()
        result.read(self._iprot)
        self._iprot.readMessageEnd()
        if result.success is not None:
            return list(result.success)
        for error in (result.o1, result.o2, result.o3):
            if error is not None:
                raise error
        raise TApplicationException(
            TApplicationException.MISSING_RESULT, "get_partitions_by_names: no answer"
        )
