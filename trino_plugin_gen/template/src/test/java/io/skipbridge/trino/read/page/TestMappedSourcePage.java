package io.skipbridge.trino.read.page;

import io.skipbridge.trino.BridgeErrorCode;
import io.skipbridge.trino.read.file.ReadFailure;
import io.trino.parquet.ParquetCorruptionException;
import io.trino.parquet.ParquetDataSourceId;
import io.trino.spi.Page;
import io.trino.spi.TrinoException;
import io.trino.spi.block.Block;
import io.trino.spi.connector.SourcePage;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.util.List;
import java.util.Optional;
import java.util.function.ObjLongConsumer;
import java.util.function.UnaryOperator;

import static io.skipbridge.trino.read.storage.ReadableFile.unreadable;
import static io.trino.spi.type.BigintType.BIGINT;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestMappedSourcePage
{
    private static final RuntimeException EXPIRED = unreadable("s3://lake/f", new IOException("the token has expired"));

    @Test
    void whatFailsWhenAColumnIsReadNamesTheFile()
    {
        assertFailure(BridgeErrorCode.FILE_UNREADABLE, "the token has expired", EXPIRED);
        assertFailure(BridgeErrorCode.FILE_CORRUPT, "Could not decompress page", new RuntimeException("Could not decompress page", new IOException("bad magic")));
        assertFailure(BridgeErrorCode.FILE_CORRUPT, "out of bounds", new IndexOutOfBoundsException("out of bounds"));
    }

    @Test
    void damageIsToldInOneSentenceWithItsRemedy()
    {
        IOException damage = new ParquetCorruptionException(new ParquetDataSourceId("s3://lake/f"), "it is cut");
        assertEquals("s3://lake/f cannot be read as Parquet: it is cut. Restore the file, write it again, or remove it", ReadFailure.of(damage, "s3://lake/f").getMessage());
    }

    @Test
    void aConversionThatFailsNamesTheFile()
    {
        SourcePage column = SourcePage.create(BIGINT.createNullBlock());
        UnaryOperator<Block> broken = _ -> {
            throw new ArithmeticException("overflow");
        };
        assertFailure(BridgeErrorCode.TYPE_MISMATCH, "overflow", mapped(column, Optional.of(broken)));
    }

    private static void assertFailure(BridgeErrorCode code, String said, RuntimeException problem)
    {
        assertFailure(code, said, mapped(new Failing(problem), Optional.empty()));
    }

    private static void assertFailure(BridgeErrorCode code, String said, SourcePage page)
    {
        assertEquals(1, page.getPositionCount());
        for (TrinoException told : List.of(assertThrows(TrinoException.class, () -> page.getBlock(0)), assertThrows(TrinoException.class, page::getPage))) {
            assertEquals(code.toErrorCode(), told.getErrorCode());
            assertTrue(told.getMessage().startsWith("s3://lake/f cannot be read") && told.getMessage().contains(said), told.getMessage());
        }
    }

    private static SourcePage mapped(SourcePage page, Optional<UnaryOperator<Block>> conversion)
    {
        return new MappedSourcePage(page, new int[] {0}, new Block[1], List.of(conversion), problem -> ReadFailure.of(problem, "s3://lake/f"));
    }

    /** A page of a reader whose column cannot be read. */
    private record Failing(RuntimeException problem)
            implements SourcePage
    {
        @Override
        public int getPositionCount()
        {
            return 1;
        }

        @Override
        public long getSizeInBytes()
        {
            return 0;
        }

        @Override
        public long getRetainedSizeInBytes()
        {
            return 0;
        }

        @Override
        public void retainedBytesForEachPart(ObjLongConsumer<Object> consumer) {}

        @Override
        public int getChannelCount()
        {
            return 1;
        }

        @Override
        public Block getBlock(int channel)
        {
            throw problem;
        }

        @Override
        public Page getPage()
        {
            throw problem;
        }

        @Override
        public void selectPositions(int[] positions, int offset, int size) {}
    }
}
