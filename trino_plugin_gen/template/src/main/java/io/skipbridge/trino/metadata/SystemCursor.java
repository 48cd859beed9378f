package io.skipbridge.trino.metadata;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.NullNode;
import io.airlift.slice.Slice;
import io.airlift.slice.Slices;
import io.skipbridge.client.BridgeFailure;
import io.skipbridge.client.ProtocolException;
import io.skipbridge.trino.Planners;
import io.skipbridge.trino.wire.Plan;
import io.skipbridge.trino.wire.PlanRequest;
import io.skipbridge.trino.wire.PlannerClient;
import io.skipbridge.trino.wire.SystemPage;
import io.trino.spi.connector.RecordCursor;
import io.trino.spi.connector.SchemaTableName;
import io.trino.spi.type.Type;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;

import static io.trino.spi.type.DateTimeEncoding.packDateTimeWithZone;
import static io.trino.spi.type.TimeZoneKey.UTC_KEY;
import static io.trino.spi.type.TimestampWithTimeZoneType.TIMESTAMP_TZ_MILLIS;

/** Reads the rows of a system table; holds one page at a time. */
final class SystemCursor
        implements RecordCursor
{
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final int PAGE_ROWS = 5_000;

    private final Planners planners;
    private final PlanRequest request;
    private final SystemTableKind kind;
    private PlannerClient client;
    private Plan plan;
    private long token;
    private boolean finished;
    private List<JsonNode> columns = List.of();
    private int rows;
    private int position = -1;
    private long bytes;

    SystemCursor(Planners planners, String queryId, SchemaTableName table, SystemTableKind kind, List<String> wanted, String readVersion)
    {
        this.planners = planners;
        this.kind = kind;
        this.request = new PlanRequest(table.getSchemaName(), table.getTableName(), queryId, "", "", wanted, OptionalLong.empty(), Map.of(), readVersion);
    }

    @Override
    public boolean advanceNextPosition()
    {
        position++;
        while (position >= rows) {
            if (finished) {
                return false;
            }
            load();
        }
        return true;
    }

    private void load()
    {
        if (plan == null) {
            plan = planners.call(request.queryId(), asked -> {
                Plan opened = asked.openSystemTable(request, kind.word());
                client = planners.endpoint(opened.endpoint(), asked);
                return opened;
            });
        }
        try {
            SystemPage page = client.nextRows(plan.handle(), token, PAGE_ROWS);
            List<JsonNode> parsed = new ArrayList<>(page.columns().size());
            for (String column : page.columns()) {
                bytes += column.length();
                parsed.add(MAPPER.readTree(column));
            }
            columns = parsed;
            rows = page.rowCount();
            position = 0;
            token = page.nextToken();
            finished = page.finished();
        }
        catch (BridgeFailure e) {
            throw Planners.failure(e);
        }
        catch (IOException | ProtocolException e) {
            throw Planners.unreachable(List.of(client.address()), e);
        }
    }

    @Override
    public Type getType(int field)
    {
        return kind.columns().get(field).getType();
    }

    @Override
    public boolean isNull(int field)
    {
        return value(field).isNull();
    }

    @Override
    public boolean getBoolean(int field)
    {
        return value(field).booleanValue();
    }

    @Override
    public long getLong(int field)
    {
        long number = value(field).longValue();
        return getType(field).equals(TIMESTAMP_TZ_MILLIS) ? packDateTimeWithZone(number, UTC_KEY) : number;
    }

    @Override
    public Slice getSlice(int field)
    {
        return Slices.utf8Slice(value(field).asText());
    }

    @Override
    public double getDouble(int field)
    {
        throw new UnsupportedOperationException();
    }

    @Override
    public Object getObject(int field)
    {
        throw new UnsupportedOperationException();
    }

    /** A column that an older planner does not send is NULL. */
    private JsonNode value(int field)
    {
        return field < columns.size() ? columns.get(field).get(position) : NullNode.getInstance();
    }

    @Override
    public long getCompletedBytes()
    {
        return bytes;
    }

    @Override
    public long getReadTimeNanos()
    {
        return 0;
    }

    @Override
    public void close()
    {
        if (plan == null) {
            return;
        }
        try {
            client.closePlan(plan.handle());
        }
        catch (IOException | BridgeFailure | ProtocolException e) {
            // the plan expires by itself
        }
        plan = null;
        finished = true;
    }
}
