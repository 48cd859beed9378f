"""A metastore client that decodes only the partition fields that readers of files need.

Before 4.0 a metastore sends whole partitions. Most of the data are the columns, repeated for each
partition; creating objects for them takes longer than everything else here. Thrift's decoder skips
a field without a specification.
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
    """The generated result type; decodes only a partition's values and storage location."""

    _list, *_errors = ThriftHiveMetastore.get_partitions_by_names_result.thrift_spec
    thrift_spec = (
        _within(_list, (_list[3][0], [ttypes.Partition, _PARTITION], _list[3][2])),
        *_errors,
    )


class PartitionProjectionClient(ThriftHiveMetastore.Client):  # type: ignore[misc]
    """The generated client with one additional method."""

    def get_partition_places_by_names(
        self, db_name: str, tbl_name: str, names: list[str]
    ) -> list[ttypes.Partition]:
        """``get_partitions_by_names``; fields that file readers do not need are None."""
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
