package io.skipbridge.trino.hudi;

import io.skipbridge.trino.read.merge.UnsupportedSlice;
import org.apache.hudi.common.table.HoodieTableConfig;
import org.apache.hudi.common.table.log.block.HoodieLogBlock;

import java.io.IOException;
import java.util.Arrays;
import java.util.Iterator;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;

/**
 * What log blocks say of the places and keys of rows, held against the rows of the base file: the row at each position must have the block's key. While
 * every block has positions in this base file, rows meet by position, as in Hudi; from the first block without them on, by key.
 */
final class Positions
{
    /** Key generators that write the key of one field without the field's name. */
    private static final Set<String> BARE = Set.of("simple", "nonpartition", "nonpartitioned", "timestamp", "timestampbased", "custom");

    private final Optional<String> baseInstant;
    private final String name;
    private boolean named;
    private boolean stripped;
    private boolean decide;
    /** A position and a hash of the key that a block has for it. Not sorted before the base file is read. */
    private long[] told = new long[0];
    private int count;
    private int next;
    private long place;

    Positions(HoodieTableConfig table, Optional<String> baseInstant)
    {
        this.baseInstant = baseInstant;
        this.decide = baseInstant.isPresent();
        String[] keys = table.populateMetaFields() ? new String[0] : table.getRecordKeyFields().orElse(new String[0]);
        this.name = keys.length == 1 && !BARE.contains(generator(table)) ? keys[0] + ":" : "";
    }

    private static String generator(HoodieTableConfig table)
    {
        String said = table.getProps().getProperty("hoodie.table.keygenerator.class", "");
        said = said.isBlank() ? table.getProps().getProperty("hoodie.table.keygenerator.type", "") : said;
        String name = said.strip().substring(said.strip().lastIndexOf('.') + 1).toLowerCase(Locale.ROOT);
        return name.replaceFirst("keygenerator$", "").replace("_", "").replaceFirst("avro$", "");
    }

    /** Whether rows meet by position. */
    boolean decide()
    {
        return decide;
    }

    void useKeys()
    {
        decide = false;
    }

    /** Whether the keys of the base file's rows do not matter here. */
    boolean isEmpty()
    {
        return count == 0 && name.isEmpty();
    }

    long bytes()
    {
        return (long) told.length * Long.BYTES;
    }

    /** The positions of a block's records, ascending; null if it has none in this base file. */
    Iterator<Long> of(HoodieLogBlock block)
            throws IOException
    {
        if (baseInstant.isEmpty() || !baseInstant.get().equals(block.getBaseFileInstantTimeOfPositions())
                || block.getLogBlockHeader().getOrDefault(HoodieLogBlock.HeaderMetadataType.RECORD_POSITIONS, "").isEmpty()) {
            return null;
        }
        try {
            return block.getRecordPositions().iterator();
        }
        catch (IOException | RuntimeException e) {
            throw damaged("its positions cannot be read", e);
        }
    }

    long next(Iterator<Long> places, String key)
    {
        if (!places.hasNext()) {
            throw damaged("it has more records than positions", null);
        }
        long place = places.next();
        if (place < 0 || place > Integer.MAX_VALUE) {
            throw damaged("it changes the row '%s' at position %s of the base file, which has no such row".formatted(key, Long.toUnsignedString(place)), null);
        }
        if (count == told.length) {
            told = Arrays.copyOf(told, Math.max(64, count * 2));
        }
        told[count++] = place << 32 | key.hashCode() & 0xFFFF_FFFFL;
        return place;
    }

    /** The key of a deletion, as rows have it. */
    String bare(String key)
    {
        if (name.isEmpty() || !key.startsWith(name)) {
            return key;
        }
        stripped = true;
        refuseDoubt();
        return key.substring(name.length());
    }

    /** The key of a row. */
    void see(String key)
    {
        if (!name.isEmpty() && key.startsWith(name)) {
            named = true;
            refuseDoubt();
        }
    }

    private void refuseDoubt()
    {
        if (named && stripped) {
            throw new UnsupportedSlice("keys of rows begin with '%s', as keys of deleted rows do, so it is not sure which rows the log deletes. Read the table once it is compacted, or with Spark".formatted(name));
        }
    }

    /** The position of the next row of the base file, whose key is this; null if {@link #isEmpty}. */
    long check(String key)
    {
        if (place == 0) {
            Arrays.sort(told, 0, count);
        }
        if (key != null) {
            see(key);
        }
        for (; next < count && told[next] >>> 32 == place; next++) {
            if ((int) told[next] != key.hashCode()) {
                throw damaged("it changes a row at position %d of the base file, which holds '%s'".formatted(place, key), null);
            }
        }
        return place++;
    }

    /** After the last row of the base file. */
    void checkEnd()
    {
        if (place == 0) {
            Arrays.sort(told, 0, count);
        }
        if (next < count) {
            throw damaged("it changes a row at position %d of the base file, which has no such row".formatted(told[next] >>> 32), null);
        }
    }

    static UnsupportedSlice damaged(String what, Throwable cause)
    {
        return new UnsupportedSlice("a block of its logs is damaged: %s. Restore the log, or roll back the commit that wrote it".formatted(what), cause);
    }
}
