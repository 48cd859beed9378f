package io.skipbridge.trino.hudi;

import io.skipbridge.trino.read.merge.UnsupportedSlice;
import org.apache.avro.Schema;
import org.junit.jupiter.api.Test;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

class TestTableNames
{
    private static final String FIELDS = """
            {"name": "CamelCase", "type": ["null", "int"], "default": null},
            {"name": "Price", "type": ["null", {"type": "fixed", "name": "fixed", "namespace": "t.Price", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2}], "default": null},
            {"name": "Inner", "type": ["null", {"type": "record", "name": "Inner", "namespace": "t", "fields": [{"name": "Aa", "type": ["null", "int"], "default": null}]}], "default": null},
            {"name": "Items", "type": {"type": "array", "items": {"type": "record", "name": "Item", "namespace": "t", "fields": [{"name": "Bb", "type": "long"}]}}},
            {"name": "Pairs", "type": {"type": "map", "values": ["null", {"type": "record", "name": "Pair", "namespace": "t", "fields": [{"name": "Cc", "type": "string"}]}]}},
            {"name": "Kind", "type": {"type": "enum", "name": "Kind", "namespace": "t", "symbols": ["X", "Y"]}}""";
    private static final Schema TABLE = record(FIELDS);

    @Test
    void everyNameIsTheTables()
    {
        String lower = AvroTypes.lower(FIELDS).replace("[\"x\", \"y\"]", "[\"X\", \"Y\"]").replace("logicaltype", "logicalType");
        assertEquals(shape(TABLE.toString()), shape(TableNames.in(record(lower).toString(), TABLE)));
    }

    @Test
    void aSchemaWithTheTablesNamesIsTheSameText()
    {
        String text = record("""
                {"name": "Items", "type": {"type": "array", "items": {"type": "record", "name": "Item", "namespace": "t", "fields": [{"name": "Bb", "type": "int"}]}}},
                {"name": "gone", "type": "string"}""").toString();
        assertSame(text, TableNames.in(text, TABLE));
    }

    @Test
    void theExactNameWins()
    {
        String text = record("{\"name\": \"camelcase\", \"type\": \"int\"}, {\"name\": \"CamelCase\", \"type\": \"int\"}").toString();
        assertSame(text, TableNames.in(text, TABLE));
    }

    @Test
    void severalColumnsForOneAreRefused()
    {
        String two = record("{\"name\": \"camelcase\", \"type\": \"int\"}, {\"name\": \"CAMELCASE\", \"type\": \"int\"}").toString();
        assertThrows(UnsupportedSlice.class, () -> TableNames.in(two, TABLE));
        String one = record("{\"name\": \"camelCase\", \"type\": \"int\"}").toString();
        assertThrows(UnsupportedSlice.class, () -> TableNames.in(one, new Schema.Parser().parse(two)));
    }

    private static Schema record(String fields)
    {
        return new Schema.Parser().parse("{\"type\": \"record\", \"name\": \"t_record\", \"fields\": [%s]}".formatted(fields));
    }

    /** Without what readers do not look at. */
    private static String shape(String schema)
    {
        return new Schema.Parser().parse(schema).toString().replace(",\"default\":null", "");
    }
}
