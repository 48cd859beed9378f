package io.skipbridge.trino.metadata;

import io.trino.spi.connector.ColumnHandle;
import io.trino.spi.type.Type;

import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.TimestampWithTimeZoneType.TIMESTAMP_TZ_MILLIS;
import static io.trino.spi.type.VarcharType.VARCHAR;
import static java.util.Objects.requireNonNull;

/**
 * A column.
 *
 * @param ordinal of a partition key its position among the keys, of a data column its position among the table's data columns; -1 where it is not known
 */
public record BridgeColumnHandle(String name, Type type, ColumnKind kind, int ordinal)
        implements ColumnHandle
{
    public static final int NO_POSITION = -1;
    public static final BridgeColumnHandle PATH = new BridgeColumnHandle("$path", VARCHAR, ColumnKind.PATH, 0);
    public static final BridgeColumnHandle FILE_SIZE = new BridgeColumnHandle("$file_size", BIGINT, ColumnKind.FILE_SIZE, 0);
    public static final BridgeColumnHandle FILE_MODIFIED_TIME = new BridgeColumnHandle("$file_modified_time", TIMESTAMP_TZ_MILLIS, ColumnKind.FILE_MODIFIED_TIME, 0);
    public static final BridgeColumnHandle PARTITION = new BridgeColumnHandle("$partition", VARCHAR, ColumnKind.PARTITION, 0);

    public BridgeColumnHandle
    {
        requireNonNull(name, "name is null");
        requireNonNull(type, "type is null");
        requireNonNull(kind, "kind is null");
    }

    /** A column of an aggregation, which has no values in files. */
    static BridgeColumnHandle computed(String name, Type type)
    {
        return new BridgeColumnHandle(name, type, ColumnKind.DATA, NO_POSITION);
    }

    public boolean isData()
    {
        return kind == ColumnKind.DATA;
    }

    @Override
    public String toString()
    {
        return name + ":" + type.getDisplayName();
    }
}
