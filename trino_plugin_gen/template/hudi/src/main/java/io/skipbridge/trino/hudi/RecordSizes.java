package io.skipbridge.trino.hudi;

import org.apache.avro.generic.GenericFixed;
import org.apache.avro.generic.IndexedRecord;
import org.apache.avro.util.Utf8;
import org.apache.hudi.common.table.read.BufferedRecord;
import org.apache.hudi.common.util.SizeEstimator;

import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.Map;

/** Estimates the memory of records that are kept until they are merged, in bytes. */
final class RecordSizes
        implements SizeEstimator<BufferedRecord<IndexedRecord>>
{
    private static final int OBJECT = 24;
    private static final int BUFFERED = 160;

    private long last = BUFFERED;

    @Override
    public long sizeEstimate(BufferedRecord<IndexedRecord> record)
    {
        last = BUFFERED + record.getRecordKey().length() + size(record.getRecord());
        return last;
    }

    /** The estimate for the record that was measured last. */
    long last()
    {
        return last;
    }

    private static long size(Object value)
    {
        return switch (value) {
            case null -> 0;
            case Utf8 text -> 2 * OBJECT + text.getByteLength();
            case CharSequence text -> 2 * OBJECT + 2L * text.length();
            case ByteBuffer bytes -> 2 * OBJECT + bytes.remaining();
            case GenericFixed fixed -> 2 * OBJECT + fixed.bytes().length;
            case IndexedRecord record -> {
                long size = 2 * OBJECT;
                for (int i = 0; i < record.getSchema().getFields().size(); i++) {
                    size += 8 + size(record.get(i));
                }
                yield size;
            }
            case Collection<?> values -> 2 * OBJECT + values.stream().mapToLong(each -> 8 + size(each)).sum();
            case Map<?, ?> entries -> 2 * OBJECT + entries.entrySet().stream().mapToLong(each -> 2 * OBJECT + size(each.getKey()) + size(each.getValue())).sum();
            default -> OBJECT;
        };
    }
}
