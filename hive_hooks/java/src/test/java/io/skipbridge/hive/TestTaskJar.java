package io.skipbridge.hive;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestTaskJar
{
    @Test
    void aClassOfHivesOwnLoaderOutlivesSessions()
            throws IOException
    {
        ClassLoader own = TaskJar.class.getClassLoader();
        assertFalse(TaskJar.isOfOneSession(own));
        try (URLClassLoader below = new URLClassLoader(new URL[0], own)) {
            assertFalse(TaskJar.isOfOneSession(below));
        }
    }

    @Test
    void aClassThatHivesLoaderLacksOrHasAnotherTimeIsOfOneSession()
            throws IOException
    {
        ClassLoader without = ClassLoader.getSystemClassLoader().getParent();
        assertTrue(TaskJar.isOfOneSession(without));
        URL[] classes = {TaskJar.class.getProtectionDomain().getCodeSource().getLocation()};
        try (URLClassLoader again = new URLClassLoader(classes, without)) {
            assertTrue(TaskJar.isOfOneSession(again));
        }
    }
}
