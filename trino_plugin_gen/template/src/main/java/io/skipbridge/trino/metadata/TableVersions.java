package io.skipbridge.trino.metadata;

import io.airlift.slice.Slice;
import io.skipbridge.trino.BridgeSession;
import io.trino.spi.TrinoException;
import io.trino.spi.connector.ConnectorSession;
import io.trino.spi.connector.ConnectorTableVersion;
import io.trino.spi.connector.PointerType;
import io.trino.spi.connector.SchemaTableName;
import io.trino.spi.type.DateType;
import io.trino.spi.type.LongTimestamp;
import io.trino.spi.type.LongTimestampWithTimeZone;
import io.trino.spi.type.TimestampType;
import io.trino.spi.type.TimestampWithTimeZoneType;
import io.trino.spi.type.Type;
import io.trino.spi.type.VarcharType;

import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.Optional;

import static io.trino.spi.StandardErrorCode.INVALID_ARGUMENTS;
import static io.trino.spi.StandardErrorCode.NOT_SUPPORTED;
import static io.trino.spi.type.BigintType.BIGINT;
import static io.trino.spi.type.DateTimeEncoding.unpackMillisUtc;
import static io.trino.spi.type.IntegerType.INTEGER;
import static io.trino.spi.type.SmallintType.SMALLINT;
import static io.trino.spi.type.TinyintType.TINYINT;

/** Converts what a query says of a table's version to a read version of the protocol. */
final class TableVersions
{
    private TableVersions() {}

    static TableVersion of(ConnectorSession session, SchemaTableName table, Optional<ConnectorTableVersion> start, Optional<ConnectorTableVersion> end)
    {
        if (start.isPresent()) {
            throw new TrinoException(NOT_SUPPORTED, "Table %s: a range of versions cannot be read here; name one version".formatted(table));
        }
        return of(session, table, end.map(version -> readVersion(session, version)).orElse(""));
    }

    static TableVersion newest(ConnectorSession session, SchemaTableName table)
    {
        return of(session, table, "");
    }

    /** The rows written after one version, up to and including another, or the newest. */
    static TableVersion changes(ConnectorSession session, SchemaTableName table, String after, Optional<String> until)
    {
        if ((after + "..").indexOf("..") < after.length()) {
            throw unnamed(after);
        }
        return of(session, table, "changes:%s..%s".formatted(named(after), named(until.orElse(""))));
    }

    private static TableVersion of(ConnectorSession session, SchemaTableName table, String readVersion)
    {
        String optimized = BridgeSession.readOptimized(session) ? ";read_optimized" : "";
        String segments = BridgeSession.segments(session, table).map(";segments="::concat).orElse("");
        return new TableVersion(table, readVersion + optimized + segments);
    }

    private static String readVersion(ConnectorSession session, ConnectorTableVersion version)
    {
        return version.getPointerType() == PointerType.TEMPORAL
                ? "time:" + millis(session, version.getVersionType(), version.getVersion())
                : "version:" + name(version.getVersionType(), version.getVersion());
    }

    private static String name(Type type, Object value)
    {
        if (type == BIGINT || type == INTEGER || type == SMALLINT || type == TINYINT) {
            return value.toString();
        }
        if (!(type instanceof VarcharType)) {
            throw new TrinoException(NOT_SUPPORTED, "A version of a table is a text or a whole number, not a value of type " + type.getDisplayName());
        }
        String name = ((Slice) value).toStringUtf8();
        if (name.isEmpty()) {
            throw unnamed(name);
        }
        return named(name);
    }

    /** The name of a version, if the protocol can tell it from the flags behind it. */
    private static String named(String name)
    {
        if (name.contains(";")) {
            throw unnamed(name);
        }
        return name;
    }

    private static TrinoException unnamed(String name)
    {
        return new TrinoException(INVALID_ARGUMENTS, "'%s' does not name a version of a table".formatted(name));
    }

    /** Milliseconds since the epoch. A value without a zone is in the session's zone, as a cast to an instant takes it. */
    private static long millis(ConnectorSession session, Type type, Object value)
    {
        ZoneId zone = session.getTimeZoneKey().getZoneId();
        return switch (type) {
            case DateType _ -> LocalDate.ofEpochDay((long) value).atStartOfDay(zone).toInstant().toEpochMilli();
            case TimestampType timestamp -> {
                long micros = timestamp.isShort() ? (long) value : ((LongTimestamp) value).getEpochMicros();
                long nanos = Math.floorMod(micros, 1_000_000L) * 1_000;
                yield LocalDateTime.ofEpochSecond(Math.floorDiv(micros, 1_000_000L), (int) nanos, ZoneOffset.UTC).atZone(zone).toInstant().toEpochMilli();
            }
            case TimestampWithTimeZoneType timestamp -> timestamp.isShort() ? unpackMillisUtc((long) value) : ((LongTimestampWithTimeZone) value).getEpochMillis();
            default -> throw new TrinoException(NOT_SUPPORTED, "A table is read as of a date or a timestamp, not as of a value of type " + type.getDisplayName());
        };
    }
}
