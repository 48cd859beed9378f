package io.skipbridge.trino.metadata;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.skipbridge.trino.predicate.ValueReader;
import io.trino.spi.Page;
import io.trino.spi.block.Block;
import io.trino.spi.block.BlockBuilder;
import io.trino.spi.connector.ColumnHandle;
import io.trino.spi.connector.ConnectorPageSource;
import io.trino.spi.connector.FixedPageSource;
import io.trino.spi.type.Type;
import io.trino.spi.type.TypeUtils;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;

/** Turns {@link AggregateRows} into a page. */
public final class AggregatePages
{
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private AggregatePages() {}

    public static ConnectorPageSource source(AggregateRows known, List<ColumnHandle> columns)
    {
        JsonNode rows;
        try {
            rows = MAPPER.readTree(known.rows());
        }
        catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        Block[] blocks = new Block[columns.size()];
        for (int i = 0; i < blocks.length; i++) {
            blocks[i] = block(rows, known.columns().indexOf(columns.get(i)), ((BridgeColumnHandle) columns.get(i)).type());
        }
        return new FixedPageSource(List.of(new Page(rows.size(), blocks)));
    }

    private static Block block(JsonNode rows, int column, Type type)
    {
        BlockBuilder builder = type.createBlockBuilder(null, rows.size());
        for (JsonNode row : rows) {
            TypeUtils.writeNativeValue(type, builder, ValueReader.read(row.get(column), type));
        }
        return builder.build();
    }

    static int count(String rows)
    {
        try {
            return MAPPER.readTree(rows).size();
        }
        catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
