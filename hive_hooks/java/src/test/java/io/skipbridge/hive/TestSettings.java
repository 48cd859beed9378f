package io.skipbridge.hive;

import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Test;

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
