package io.skipbridge.hive;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.ql.exec.Utilities;
import org.apache.hadoop.hive.ql.plan.MapWork;
import org.apache.hadoop.hive.ql.plan.PartitionDesc;
import org.apache.hadoop.hive.ql.plan.TableDesc;
import org.apache.hadoop.mapred.FileInputFormat;
import org.apache.hadoop.mapred.JobConf;
import org.junit.jupiter.api.Test;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Properties;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

/** The law: what table owners and sessions write chooses no planner, and no longer wait. */
class TestSettings
{
    private static Configuration site(String... settings)
    {
        Configuration made = new Configuration(false);
        for (int i = 0; i < settings.length; i += 2) {
            made.set(settings[i], settings[i + 1]);
        }
        return made;
    }

    @Test
    void theServerSaysWhomToAsk()
    {
        Configuration session = site(Settings.PLANNER, "elsewhere:1", Settings.BY_SESSION, "true");
        assertEquals("own:2", Settings.planner(session, site(Settings.PLANNER, "own:2")));
        assertEquals("127.0.0.1:9527", Settings.planner(session, site()));
        assertEquals("elsewhere:1", Settings.planner(session, site(Settings.BY_SESSION, "true")));
    }

    /** A storage handler may copy all properties of its table into the job properties of its descriptor, as that of JDBC does. */
    @Test
    void aTaskAsksWhomTheDescriptorOfItsOwnTableNames()
    {
        MapWork work = new MapWork();
        work.addPathToPartitionInfo(new Path("file:/theirs"), read(SkipFilesHook.TOLD, "theirs:1 90000"));
        work.addPathToPartitionInfo(new Path("file:/own"), read(SkipFilesHook.TOLD, "own:2 500"));
        work.addPathToPartitionInfo(new Path("file:/plain"), read("other", "x"));
        JobConf job = job(work, "file:/own");
        assertEquals("own", Settings.planner(job).getHostString());
        assertEquals(500, Settings.timeoutMillis(job));
        job = job(work, "file:/plain");
        assertEquals("127.0.0.1", Settings.planner(job).getHostString());
        assertEquals(2000, Settings.timeoutMillis(job));
    }

    /** A task of a hooked record runs where there is no hive-site.xml: its job has the server's settings, and those of all its tables. */
    @Test
    void noPropertyOfATableSaysHowLongATaskWaits()
    {
        PartitionDesc read = read("other", "x");
        MapWork work = new MapWork();
        work.addPathToPartitionInfo(new Path("file:/plain"), read);
        JobConf job = job(work, "file:/plain");
        job.set(Settings.TIMEOUT, "90000");
        assertEquals(90000, Settings.timeoutMillis(job));
        read.getTableDesc().getProperties().setProperty(Settings.TIMEOUT, "90000");
        assertEquals(2000, Settings.timeoutMillis(job));
    }

    private static PartitionDesc read(String name, String value)
    {
        TableDesc table = new TableDesc();
        table.setProperties(new Properties());
        table.setJobProperties(Collections.singletonMap(name, value));
        return new PartitionDesc(table, new LinkedHashMap<>());
    }

    private static JobConf job(MapWork work, String path)
    {
        JobConf job = new JobConf();
        job.set("hive.exec.plan", "/plan");
        FileInputFormat.setInputPaths(job, new Path(path));
        Utilities.setMapWork(job, work);
        return job;
    }

    @Test
    void aSessionMayOnlyWaitLess()
    {
        Configuration server = site(Settings.TIMEOUT, "500");
        assertEquals(500, Settings.timeoutMillis(site(), server));
        assertEquals(500, Settings.timeoutMillis(site(Settings.TIMEOUT, "900"), server));
        assertEquals(20, Settings.timeoutMillis(site(Settings.TIMEOUT, "20"), server));
        assertThrows(IllegalArgumentException.class, () -> Settings.timeoutMillis(site(Settings.TIMEOUT, "soon"), server));
    }
}
