package io.skipbridge.trino.read.footer;

import io.skipbridge.trino.metadata.BridgeColumnHandle;
import io.skipbridge.trino.metadata.ColumnKind;
import io.trino.spi.predicate.Domain;
import io.trino.spi.predicate.TupleDomain;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;
import org.apache.parquet.schema.Types;
import org.joda.time.DateTimeZone;
import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.LongStream;

import static io.trino.spi.type.BigintType.BIGINT;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestReadSchema
{
    private static final BridgeColumnHandle K = new BridgeColumnHandle("k", BIGINT, ColumnKind.DATA, 0);

    @Test
    void fewValuesAreAskedOfEachRowGroup()
    {
        ReadSchema schema = asking(100);
        assertEquals(schema.predicate(), schema.predicate(1));
        assertEquals(100, ranges(schema.predicate(1)));
    }

    @Test
    void manyValuesAreAskedOfManyRows()
    {
        ReadSchema schema = asking(365);
        assertEquals(365, ranges(schema.predicate(73_000)));
        assertEquals(365, ranges(schema.predicate()));
    }

    @Test
    void fewRowsAreAskedForTheSpanOfManyValues()
    {
        ReadSchema schema = asking(365);
        assertEquals(1, ranges(schema.predicate(2_300)));
        assertTrue(domain(schema.predicate(2_300)).contains(domain(schema.predicate())));
    }

    @Test
    void nothingIsAskedWithoutPredicate()
    {
        assertTrue(schema(TupleDomain.all()).predicate(1).domain().isAll());
    }

    private static int ranges(ReadSchema.GroupPredicate asked)
    {
        return domain(asked).getValues().getRanges().getRangeCount();
    }

    private static Domain domain(ReadSchema.GroupPredicate asked)
    {
        return asked.domain().getDomains().orElseThrow().values().iterator().next();
    }

    private static ReadSchema asking(int values)
    {
        List<Long> asked = LongStream.range(0, values).map(k -> k * 3).boxed().toList();
        return schema(TupleDomain.withColumnDomains(Map.of(K, Domain.multipleValues(BIGINT, asked))));
    }

    private static ReadSchema schema(TupleDomain<BridgeColumnHandle> predicate)
    {
        MessageType message = new MessageType("table", Types.optional(PrimitiveTypeName.INT64).named("k"));
        FileSchema file = new FileSchema(new byte[0], "", message, message.getColumns(), Set.of(), Set.of());
        return ReadSchema.of(file, List.of(K), predicate, DateTimeZone.UTC, "file");
    }
}
