package io.skipbridge.hive;

import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Test;

import static org.junit.jupiter.api.Assertions.assertEquals;

/** The spellings of bridge/storage/uri.py. */
class TestCanonicalPath
{
    @Test
    void oneSpellingAFile()
    {
        check("/t/a b%20/f", "file:///t/a b%20/f");
        check("file:/t/p=100%25/f", "file:///t/p=100%25/f");
        check("file:///t/f", "file:///t/f");
        check("s3a://bucket/t/f", "s3://bucket/t/f");
        check("s3n://bucket/t/f", "s3://bucket/t/f");
        check("hdfs://NameNode:8020/t/f", "hdfs://namenode:8020/t/f");
        check("hdfs://NameService/t/f", "hdfs://NameService/t/f");
        check("wasbs://c@Account.blob.core.windows.net/t/f", "abfss://c@account.dfs.core.windows.net/t/f");
    }

    private static void check(String hadoop, String canonical)
    {
        assertEquals(canonical, CanonicalPath.of(new Path(hadoop)));
    }
}
