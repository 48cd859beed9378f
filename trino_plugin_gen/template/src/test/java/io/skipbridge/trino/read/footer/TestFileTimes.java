package io.skipbridge.trino.read.footer;

import org.apache.parquet.format.ConvertedType;
import org.apache.parquet.format.SchemaElement;
import org.apache.parquet.format.Type;
import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Set;

import static org.junit.jupiter.api.Assertions.assertEquals;

class TestFileTimes
{
    /** A file is refused only by queries that read such a column. */
    @Test
    void columnsThatAreNotSureAreToldByName()
    {
        SchemaElement list = group("L", 1);
        list.setConverted_type(ConvertedType.LIST);
        SchemaElement plain = micros("T");
        List<SchemaElement> schema = List.of(group("schema", 3), micros("old"), list, group("list", 1), micros("element"), plain);
        String told = "{\"old\": \"?\", \"l\": {\"element\": \"ms\"}, \"t\": \"ms\"}";
        assertEquals(Set.of("old", "l"), FileTimes.repair(schema, told));
        assertEquals(ConvertedType.TIMESTAMP_MILLIS, plain.getConverted_type());
    }

    /** Fields of structs have their own names in files, too. */
    @Test
    void fieldsThatWereRenamedAreNotSure()
    {
        SchemaElement plain = micros("Z");
        List<SchemaElement> schema = List.of(group("schema", 2), group("S", 2), micros("x"), plain, micros("x"));
        assertEquals(Set.of("s"), FileTimes.repair(schema, "{\"s\": {\"x\": \"?\", \"z\": \"ms\"}}"));
        assertEquals(ConvertedType.TIMESTAMP_MILLIS, plain.getConverted_type());
    }

    private static SchemaElement group(String name, int children)
    {
        SchemaElement element = new SchemaElement(name);
        element.setNum_children(children);
        return element;
    }

    private static SchemaElement micros(String name)
    {
        SchemaElement element = new SchemaElement(name);
        element.setType(Type.INT64);
        element.setConverted_type(ConvertedType.TIMESTAMP_MICROS);
        return element;
    }
}
