package io.skipbridge.trino.read.footer;

import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.internal.column.columnindex.BoundaryOrder;
import org.apache.parquet.internal.column.columnindex.ColumnIndex;
import org.apache.parquet.internal.column.columnindex.ColumnIndexBuilder;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;
import org.apache.parquet.schema.Types;
import org.junit.jupiter.api.Test;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Optional;
import java.util.Set;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;

class TestWriterDoubts
{
    @Test
    void lastVersionThatIsNotNewerCounts()
    {
        assertEquals(Set.of(), doubts("parquet-mr version 1.13.1 (build db4183109d5b734ec5930d870cdae161e408ddba)").words());
        assertEquals(Set.of("booleans", "counts"), doubts("parquet-mr version 1.8.0 (build 1)").words());
        assertEquals(Set.of("varying"), doubts("DuckDB version v1.2.0 (build 5f5512b827)").words());
        assertEquals(Set.of("varying"), doubts("parquet-rs version 57.1").words());
        assertEquals(Set.of("coded"), doubts("parquet-cpp-arrow version 11.0.0").words());
        assertEquals(Set.of(), doubts("parquet-cpp-arrow version 21.0.0").words());
        assertEquals(Set.of("booleans", "fixed", "varying", "some"), doubts("Polars").words());
        for (String other : new String[] {"", "parquet-mr", "version 1", "github.com/xitongsys/parquet-go"}) {
            assertEquals(Set.of("booleans", "varying", "counts"), doubts(other).words());
        }
        assertEquals(Set.of(), doubts("parquet-mr-trino\nversion 476").words());
        assertEquals(doubts(""), WriterDoubts.of(Optional.empty()));
    }

    @Test
    void pagesKeepTheirBoundsWithoutCounts()
    {
        ColumnIndex stated = index(PrimitiveTypeName.INT64, 8);
        ColumnIndex believed = doubts("github.com/xitongsys/parquet-go").believed(stated, column(PrimitiveTypeName.INT64));
        assertNull(believed.getNullCounts());
        assertEquals(stated.getMinValues(), believed.getMinValues());
        assertEquals(stated.getMaxValues(), believed.getMaxValues());
        assertEquals(stated.getNullPages(), believed.getNullPages());
        assertSame(stated, doubts("parquet-mr version 1.13.1").believed(stated, column(PrimitiveTypeName.INT64)));
        assertNull(doubts("Polars").believed(stated, column(PrimitiveTypeName.INT64)).getNullCounts());
    }

    @Test
    void boundsOfPagesThatAreNotBelieved()
    {
        assertNull(doubts("Polars").believed(index(PrimitiveTypeName.BOOLEAN, 1), column(PrimitiveTypeName.BOOLEAN)));
        assertNull(doubts("Arrow2").believed(index(PrimitiveTypeName.INT64, 8), column(PrimitiveTypeName.INT64)));
        assertNull(doubts("parquet-mr version 1.13.1").believed((ColumnIndex) null, column(PrimitiveTypeName.INT64)));
    }

    private static WriterDoubts doubts(String createdBy)
    {
        return WriterDoubts.of(Optional.of(createdBy));
    }

    private static ColumnDescriptor column(PrimitiveTypeName name)
    {
        PrimitiveType type = Types.optional(name).named("x");
        return new ColumnDescriptor(new String[] {"x"}, type, 0, 1);
    }

    private static ColumnIndex index(PrimitiveTypeName name, int width)
    {
        List<ByteBuffer> values = List.of(ByteBuffer.allocate(width));
        return ColumnIndexBuilder.build(Types.optional(name).named("x"), BoundaryOrder.ASCENDING, List.of(false), List.of(0L), values, values);
    }
}
