package io.skipbridge.hive;

import org.apache.hadoop.mapred.InputFormat;
import org.apache.hadoop.mapred.InputSplit;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.RecordReader;
import org.apache.hadoop.mapred.Reporter;

import java.io.IOException;

/** The input format of tables of segments: it refuses to read them. */
public class SegmentInputFormat
        implements InputFormat<Object, Object>
{
    @Override
    public InputSplit[] getSplits(JobConf job, int splits)
            throws IOException
    {
        throw refusal(job);
    }

    @Override
    public RecordReader<Object, Object> getRecordReader(InputSplit split, JobConf job, Reporter reporter)
            throws IOException
    {
        throw refusal(job);
    }

    private static IOException refusal(JobConf job)
    {
        return new IOException(job.get("name", "the table") + " is a table of segments, whose files Hive does not know -> read it with Trino or Python,"
                + " or declare an external table of Hive over its files");
    }
}
