"""The metastore's own records, as its Thrift interface defines them."""

from bridge.metastore._gen.ttypes import (
    FieldSchema,
    NotificationEvent,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
)

__all__ = [
    "FieldSchema",
    "NotificationEvent",
    "Partition",
    "SerDeInfo",
    "StorageDescriptor",
    "Table",
]
