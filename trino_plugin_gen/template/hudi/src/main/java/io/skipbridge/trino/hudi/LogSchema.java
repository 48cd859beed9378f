package io.skipbridge.trino.hudi;

import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.util.Utf8;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Optional;

/**
 * How the fields of a required schema are found in records that a block's own schema describes. All other fields are passed over. It gives the values
 * that Avro's reader gives, and is made only where that converts nothing: a field has the same schema on both sides, or is missing in the block and NULL.
 */
final class LogSchema
{
    private static final Recent<Key, Optional<LogSchema>> KNOWN = new Recent<>(key -> resolve(new Schema.Parser().setValidateDefaults(false).parse(key.written()), key.required()));

    /** Fields of the block in their order; those after the last wanted one are left out. */
    private final Step[] steps;
    private final Schema required;

    private LogSchema(Schema required, Step[] steps)
    {
        this.required = required;
        this.steps = steps;
    }

    private record Key(String written, Schema required) {}

    /** @return empty if values have to be converted, or the schemas do not fit */
    static Optional<LogSchema> of(String written, Schema required)
    {
        return KNOWN.get(new Key(written, required));
    }

    private static Optional<LogSchema> resolve(Schema written, Schema required)
    {
        if (written.getType() != Schema.Type.RECORD || !written.getName().equals(required.getName())) {
            return Optional.empty();
        }
        int last = -1;
        for (Schema.Field field : required.getFields()) {
            Schema.Field source = written.getField(field.name());
            if (!field.aliases().isEmpty() || (source == null ? !isNullByDefault(field) : !source.schema().equals(field.schema()))) {
                return Optional.empty();
            }
            last = source == null ? last : Math.max(last, source.pos());
        }
        Step[] steps = new Step[last + 1];
        for (int i = 0; i <= last; i++) {
            Schema.Field source = written.getFields().get(i);
            Schema.Field target = required.getField(source.name());
            steps[i] = Step.of(source.schema(), target == null ? -1 : target.pos());
        }
        return Optional.of(new LogSchema(required, steps));
    }

    private static boolean isNullByDefault(Schema.Field field)
    {
        return field.hasDefaultValue() && field.schema().isNullable() && field.schema().getType() == Schema.Type.UNION && field.schema().getTypes().getFirst().getType() == Schema.Type.NULL;
    }

    Schema required()
    {
        return required;
    }

    /** Reads the values of a record; {@code values} has a place for each required field. */
    void read(BinaryDecoder decoder, Object[] values)
            throws IOException
    {
        for (Step step : steps) {
            step.read(decoder, values);
        }
    }

    /** The same for the wanted fields alone. */
    void read(BinaryDecoder decoder, Object[] values, boolean[] wanted, int last)
            throws IOException
    {
        for (Step step : steps) {
            if (step.target >= 0 && wanted[step.target]) {
                step.read(decoder, values);
                if (step.target == last) {
                    return;
                }
            }
            else {
                step.skip(decoder);
            }
        }
    }

    /** The wanted field that comes last in the block; -1 if the block has none of them. */
    int last(boolean[] wanted)
    {
        int last = -1;
        for (Step step : steps) {
            last = step.target >= 0 && wanted[step.target] ? step.target : last;
        }
        return last;
    }

    /** One field of the block. */
    private record Step(Schema schema, Schema.Type type, int nullBranch, int target, GenericDatumReader<Object> other)
    {
        /** @param target its place in the required schema; -1: it is passed over */
        static Step of(Schema schema, int target)
        {
            Schema value = schema;
            int nullBranch = -1;
            if (schema.getType() == Schema.Type.UNION && schema.getTypes().size() == 2 && schema.isNullable()) {
                nullBranch = schema.getTypes().getFirst().getType() == Schema.Type.NULL ? 0 : 1;
                value = schema.getTypes().get(1 - nullBranch);
            }
            boolean isPlain = switch (value.getType()) {
                case BOOLEAN, INT, LONG, FLOAT, DOUBLE, BYTES -> true;
                case STRING -> value.getProp(GenericData.STRING_PROP) == null;
                default -> false;
            };
            return isPlain
                    ? new Step(value, value.getType(), nullBranch, target, null)
                    : new Step(schema, schema.getType(), -1, target, new GenericDatumReader<>(schema));
        }

        void read(BinaryDecoder decoder, Object[] values)
                throws IOException
        {
            if (target < 0) {
                skip(decoder);
            }
            else if (nullBranch >= 0 && isNull(decoder)) {
                values[target] = null;
            }
            else {
                values[target] = value(decoder);
            }
        }

        private Object value(BinaryDecoder decoder)
                throws IOException
        {
            if (other != null) {
                return other.read(null, decoder);
            }
            return switch (type) {
                case BOOLEAN -> decoder.readBoolean();
                case INT -> decoder.readInt();
                case LONG -> decoder.readLong();
                case FLOAT -> decoder.readFloat();
                case DOUBLE -> decoder.readDouble();
                case STRING -> decoder.readString((Utf8) null);
                case BYTES -> decoder.readBytes((ByteBuffer) null);
                default -> throw new IllegalStateException(type.getName());
            };
        }

        void skip(BinaryDecoder decoder)
                throws IOException
        {
            if (nullBranch >= 0 && isNull(decoder)) {
                return;
            }
            switch (type) {
                case BOOLEAN -> decoder.readBoolean();
                case INT -> decoder.readInt();
                case LONG -> decoder.readLong();
                case FLOAT -> decoder.skipFixed(Float.BYTES);
                case DOUBLE -> decoder.skipFixed(Double.BYTES);
                case STRING -> decoder.skipString();
                case BYTES -> decoder.skipBytes();
                default -> GenericDatumReader.skip(schema, decoder);
            }
        }

        private boolean isNull(BinaryDecoder decoder)
                throws IOException
        {
            int branch = decoder.readIndex();
            if ((branch & ~1) != 0) {
                throw new IOException("a value has the branch %d of a union of two types".formatted(branch));
            }
            return branch == nullBranch;
        }
    }
}
