package io.skipbridge.trino.read.footer;

import io.trino.parquet.ParquetDataSourceId;
import org.apache.parquet.format.FieldRepetitionType;
import org.apache.parquet.format.FileMetaData;
import org.apache.parquet.format.LogicalType;
import org.apache.parquet.format.NullType;
import org.apache.parquet.format.SchemaElement;
import org.apache.parquet.format.Type;
import org.apache.parquet.format.Util;
import org.junit.jupiter.api.Test;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.List;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestFileSchema
{
    @Test
    void aColumnOfTheNullTypeIsOneThatTheFileLacks()
            throws IOException
    {
        SchemaElement root = new SchemaElement("schema");
        root.setNum_children(2);
        SchemaElement nothing = column("X", Type.INT32);
        nothing.setLogicalType(LogicalType.UNKNOWN(new NullType()));
        ByteArrayOutputStream written = new ByteArrayOutputStream();
        Util.writeFileMetaData(new FileMetaData(1, List.of(root, nothing, column("id", Type.INT64)), 0, List.of()), written);
        FooterBytes footer = new FooterBytes(written.toByteArray(), 0, written.size());
        FileSchema schema = FileSchema.read(footer, "", new ParquetDataSourceId("f"));
        assertTrue(schema.message().containsField("id"));
        assertFalse(schema.message().containsField("x"));
        assertEquals(2, schema.leaves().size());
    }

    private static SchemaElement column(String name, Type type)
    {
        SchemaElement element = new SchemaElement(name);
        element.setType(type);
        element.setRepetition_type(FieldRepetitionType.OPTIONAL);
        return element;
    }
}
