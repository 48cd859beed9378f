package io.skipbridge.trino.hudi;

import io.skipbridge.trino.read.merge.SliceRequest;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.IndexedRecord;
import org.apache.hudi.common.model.DeleteRecord;
import org.apache.hudi.common.model.HoodieAvroIndexedRecord;
import org.apache.hudi.common.model.HoodieKey;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.table.log.HoodieLogFormat;
import org.apache.hudi.common.table.log.LogReaderUtils;
import org.apache.hudi.common.table.log.block.HoodieAvroDataBlock;
import org.apache.hudi.common.table.log.block.HoodieCommandBlock;
import org.apache.hudi.common.table.log.block.HoodieDeleteBlock;
import org.apache.hudi.common.table.log.block.HoodieLogBlock;
import org.apache.hudi.common.table.log.block.HoodieLogBlock.HeaderMetadataType;
import org.apache.hudi.common.util.collection.Pair;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/** Writes a log with Hudi's own blocks. */
final class LogWriter
{
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    private final Schema schema;
    private Map<HeaderMetadataType, String> positions = Map.of();

    LogWriter(Schema schema)
    {
        this.schema = schema;
    }

    /** The next block's records are of these positions in the base file that an instant wrote. */
    LogWriter at(String baseInstant, Long... found)
            throws IOException
    {
        positions = Map.of(
                HeaderMetadataType.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS, baseInstant,
                HeaderMetadataType.RECORD_POSITIONS, LogReaderUtils.encodePositions(Set.of(found)));
        return this;
    }

    /** A block of rows; the values are those of the schema's fields. */
    LogWriter rows(String instant, Object[]... rows)
            throws IOException
    {
        List<HoodieRecord> records = Arrays.stream(rows).map(this::record).toList();
        Map<HeaderMetadataType, String> header = header(instant);
        HoodieAvroDataBlock block = new HoodieAvroDataBlock(records, new HashMap<>(header), "_hoodie_record_key");
        // without locations of its own, Hudi's block leaves the positions out
        return block(block.getBlockType(), header, block.getContentBytes(storage()).toByteArray(), block.getLogBlockFooter());
    }

    private HoodieRecord record(Object[] values)
    {
        GenericData.Record record = new GenericData.Record(schema);
        for (int i = 0; i < values.length; i++) {
            record.put(i, values[i]);
        }
        return new HoodieAvroIndexedRecord(new HoodieKey(String.valueOf(values[0]), ""), (IndexedRecord) record);
    }

    /** A block without the schema of its rows. */
    LogWriter nameless(String instant, HoodieLogBlock.HoodieLogBlockType type)
            throws IOException
    {
        return block(type, Map.of(HeaderMetadataType.INSTANT_TIME, instant), new byte[8], Map.of());
    }

    LogWriter deletes(String instant, DeleteRecord... deletes)
            throws IOException
    {
        Map<HeaderMetadataType, String> header = header(instant);
        HoodieDeleteBlock block = new HoodieDeleteBlock(Arrays.stream(deletes).map(delete -> Pair.of(delete, -1L)).toList(), new HashMap<>(header));
        return block(block.getBlockType(), header, block.getContentBytes(storage()).toByteArray(), block.getLogBlockFooter());
    }

    LogWriter rollback(String instant, String target)
            throws IOException
    {
        Map<HeaderMetadataType, String> header = header(instant);
        header.put(HeaderMetadataType.TARGET_INSTANT_TIME, target);
        header.put(HeaderMetadataType.COMMAND_BLOCK_TYPE, String.valueOf(HoodieCommandBlock.HoodieCommandBlockTypeEnum.ROLLBACK_BLOCK.ordinal()));
        return block(new HoodieCommandBlock(header));
    }

    private Map<HeaderMetadataType, String> header(String instant)
    {
        Map<HeaderMetadataType, String> header = new HashMap<>();
        header.put(HeaderMetadataType.INSTANT_TIME, instant);
        header.put(HeaderMetadataType.SCHEMA, schema.toString());
        header.putAll(positions);
        positions = Map.of();
        return header;
    }

    private LogWriter block(HoodieLogBlock block)
            throws IOException
    {
        return block(block.getBlockType(), block.getLogBlockHeader(), block.getContentBytes(storage()).toByteArray(), block.getLogBlockFooter());
    }

    private LogWriter block(HoodieLogBlock.HoodieLogBlockType type, Map<HeaderMetadataType, String> headers, byte[] content, Map<HoodieLogBlock.FooterMetadataType, String> footers)
            throws IOException
    {
        byte[] header = HoodieLogBlock.getHeaderMetadataBytes(headers);
        byte[] footer = HoodieLogBlock.getFooterMetadataBytes(footers);
        long length = 4 + 4 + header.length + 8 + content.length + footer.length + 8;
        DataOutputStream output = new DataOutputStream(bytes);
        output.write(HoodieLogFormat.MAGIC);
        output.writeLong(length);
        output.writeInt(HoodieLogFormat.CURRENT_VERSION);
        output.writeInt(type.ordinal());
        output.write(header);
        output.writeLong(content.length);
        output.write(content);
        output.write(footer);
        output.writeLong(length + HoodieLogFormat.MAGIC.length);
        return this;
    }

    /** Blocks ask it for settings, of which there are none. */
    private LogStorage storage()
    {
        SliceRequest.Log none = new SliceRequest.Log("file:///t/none", 0);
        return new LogStorage(new SliceRequest(Map.of(), Optional.empty(), List.of(none), List.of(), new SliceOfArrays(schema, "")));
    }

    byte[] bytes()
    {
        return bytes.toByteArray();
    }
}
