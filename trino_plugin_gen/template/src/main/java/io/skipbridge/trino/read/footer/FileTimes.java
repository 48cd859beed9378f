package io.skipbridge.trino.read.footer;

import com.fasterxml.jackson.databind.JsonNode;
import io.skipbridge.trino.wire.PlannerJson;
import io.skipbridge.trino.wire.ReaderSpec;
import org.apache.parquet.format.ConvertedType;
import org.apache.parquet.format.LogicalType;
import org.apache.parquet.format.MicroSeconds;
import org.apache.parquet.format.MilliSeconds;
import org.apache.parquet.format.SchemaElement;
import org.apache.parquet.format.TimeUnit;
import org.apache.parquet.format.TimestampType;
import org.apache.parquet.format.Type;

import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/**
 * Units of times in a table of Hudi whose files may say other ones. Some releases wrote milliseconds as microseconds, and local times as numbers of no
 * unit; later ones go by the table's schema. So a file's schema is changed to the table's units before anything is read by it.
 */
final class FileTimes
{
    static final String PROPERTY = "skipbridge.hudi.times";

    private static final String LOCAL = "local-";
    private static final String MILLIS = "ms";
    private static final String DOUBT = "?";

    private final List<SchemaElement> schema;
    private final Set<String> unsure = new HashSet<>();
    private String column = "";
    private int next = 1;

    private FileTimes(List<SchemaElement> schema)
    {
        this.schema = schema;
    }

    /** What a reader tells of the times of its files; empty if nothing. */
    static String told(ReaderSpec reader)
    {
        return reader.properties().getOrDefault(PROPERTY, "");
    }

    /** Changes the schema of a file. Returns the columns, in lower case, of which it is not sure what their times mean: they are not to be read. */
    static Set<String> repair(List<SchemaElement> schema, String told)
    {
        if (told.isEmpty()) {
            return Set.of();
        }
        JsonNode units = PlannerJson.parse(PROPERTY, told);
        FileTimes times = new FileTimes(schema);
        while (times.next < schema.size()) {
            times.column = schema.get(times.next).getName().toLowerCase(Locale.ENGLISH);
            times.column(units);
        }
        return times.unsure;
    }

    /** Passes over a column and all that is in it. {@code units} are those of its siblings, by name. */
    private void column(JsonNode units)
    {
        SchemaElement element = schema.get(next);
        JsonNode own = units.path(element.getName().toLowerCase(Locale.ENGLISH));
        if (own.asText().equals(DOUBT)) {
            requireSure();
            return;
        }
        next++;
        if (element.getNum_children() == 0) {
            leaf(element, own);
            return;
        }
        boolean isStruct = !element.isSetConverted_type() && !element.isSetLogicalType();
        for (int i = 0; i < element.getNum_children(); i++) {
            if (isStruct || own.isMissingNode()) {
                column(own);
            }
            else {
                requireSure();
            }
        }
    }

    /** Lists and maps are nested in several ways, and columns that were renamed are not known by name, so their times are not changed. */
    private void requireSure()
    {
        SchemaElement element = schema.get(next++);
        if (isMicros(element)) {
            unsure.add(column);
        }
        for (int i = 0; i < element.getNum_children(); i++) {
            requireSure();
        }
    }

    private static void leaf(SchemaElement element, JsonNode own)
    {
        if (!own.isTextual() || element.getType() != Type.INT64) {
            return;
        }
        boolean isLocal = own.asText().startsWith(LOCAL);
        boolean isMillis = own.asText().endsWith(MILLIS);
        if (isMillis && isMicros(element)) {
            boolean isUtc = !element.isSetLogicalType() || element.getLogicalType().getTIMESTAMP().isIsAdjustedToUTC();
            element.setLogicalType(timestamp(isUtc, true));
            element.setConverted_type(ConvertedType.TIMESTAMP_MILLIS);
        }
        else if (isLocal && !element.isSetLogicalType() && !element.isSetConverted_type()) {
            element.setLogicalType(timestamp(false, isMillis));
        }
    }

    private static boolean isMicros(SchemaElement element)
    {
        if (element.getType() != Type.INT64) {
            return false;
        }
        return element.isSetLogicalType()
                ? element.getLogicalType().isSetTIMESTAMP() && element.getLogicalType().getTIMESTAMP().getUnit().isSetMICROS()
                : element.isSetConverted_type() && element.getConverted_type() == ConvertedType.TIMESTAMP_MICROS;
    }

    private static LogicalType timestamp(boolean isUtc, boolean isMillis)
    {
        TimeUnit unit = isMillis ? TimeUnit.MILLIS(new MilliSeconds()) : TimeUnit.MICROS(new MicroSeconds());
        return LogicalType.TIMESTAMP(new TimestampType(isUtc, unit));
    }
}
