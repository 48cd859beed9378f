package io.skipbridge.hive;

import io.skipbridge.hive.wire.SkippableFiles;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapred.FileInputFormat;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.TextInputFormat;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.util.Set;
import java.util.TreeSet;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestPlainListing
{
    @TempDir
    java.nio.file.Path root;

    @BeforeEach
    void files()
            throws IOException
    {
        for (String name : new String[] {"p=1/a", "p=1/b c", "p=1/_SUCCESS", "p=1/.a.crc", "p=2/é", "p=2/empty", "nested/x/y"}) {
            java.nio.file.Path file = root.resolve(name);
            Files.createDirectories(file.getParent());
            Files.write(file, new byte[name.endsWith("empty") ? 0 : 3]);
        }
        Files.createDirectories(root.resolve("none"));
    }

    @Test
    void listsWhatHadoopLists()
            throws IOException
    {
        for (String[] paths : new String[][] {{"p=1"}, {"p=1", "p=2"}, {"p=2/é", "p=1"}, {"p=*"}, {"none"}, {"none", "p=2"}}) {
            JobConf job = job(paths);
            PlainListing listing = PlainListing.of(job, SkippableFiles.nothing());
            assertEquals(described(new Hadoops().listStatus(job)), described(listing.kept()));
            assertEquals(listing.kept().length, listing.listed());
        }
    }

    @Test
    void leavesToHadoopWhatItCannotTell()
            throws IOException
    {
        assertNull(PlainListing.of(job("missing"), SkippableFiles.nothing()));
        assertNull(PlainListing.of(job("nested"), SkippableFiles.nothing()));
        assertNull(PlainListing.of(job("p=1", "nested"), SkippableFiles.nothing()));
    }

    @Test
    void fewMeansAQuarter()
            throws IOException
    {
        assertFalse(PlainListing.of(job("p=1"), SkippableFiles.nothing()).few());
        assertTrue(PlainListing.of(job("none"), SkippableFiles.nothing()).few());
    }

    private JobConf job(String... paths)
    {
        JobConf job = new JobConf();
        for (String path : paths) {
            FileInputFormat.addInputPath(job, new Path(new Path(root.toUri()), path));
        }
        return job;
    }

    private static Set<String> described(FileStatus[] files)
    {
        Set<String> described = new TreeSet<>();
        for (FileStatus file : files) {
            described.add(file.getPath() + " " + file.getLen() + " " + file.getModificationTime());
        }
        return described;
    }

    private static class Hadoops
            extends TextInputFormat
    {
        @Override
        public FileStatus[] listStatus(JobConf job)
                throws IOException
        {
            return super.listStatus(job);
        }
    }
}
