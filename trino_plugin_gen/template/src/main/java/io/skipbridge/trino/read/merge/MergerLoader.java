package io.skipbridge.trino.read.merge;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.MalformedURLException;
import java.net.URISyntaxException;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.Arrays;
import java.util.List;

/**
 * Loads the merger from a directory of jars beside the plugin's own, when the first slice needs it. Its jars see none of the plugin's, but for the
 * packages that both sides share.
 */
public final class MergerLoader
{
    private static final String MERGER = "io.skipbridge.trino.hudi.HudiSliceMerger";
    private static final List<String> SHARED = List.of("io.skipbridge.trino.read.merge.", "io.trino.spi.", "io.airlift.slice.");
    private static SliceMerger hudi;

    private MergerLoader() {}

    /**
     * The merger of Hudi's slices.
     *
     * @throws UnsupportedSlice if the plugin was built without it
     */
    public static synchronized SliceMerger hudi()
    {
        if (hudi == null) {
            hudi = load(new File(home(), "hudi"));
        }
        return hudi;
    }

    /** The merger whose jars are in the directory. */
    static SliceMerger load(File directory)
    {
        File[] jars = directory.listFiles((_, name) -> name.endsWith(".jar"));
        if (jars == null || jars.length == 0) {
            throw new UnsupportedSlice("the plugin has no directory %s with Hudi's reader. Build the plugin with --hudi".formatted(directory));
        }
        ClassLoader loader = new URLClassLoader("hudi", Arrays.stream(jars).sorted().map(MergerLoader::url).toArray(URL[]::new), new SharedClasses());
        try {
            return (SliceMerger) loader.loadClass(MERGER).getConstructor().newInstance();
        }
        catch (ReflectiveOperationException | LinkageError e) {
            throw new UnsupportedSlice("%s has no merger of this plugin's version: %s. Build the plugin with --hudi".formatted(directory, e), e);
        }
    }

    private static File home()
    {
        try {
            return new File(MergerLoader.class.getProtectionDomain().getCodeSource().getLocation().toURI()).getParentFile();
        }
        catch (URISyntaxException e) {
            throw new IllegalStateException(e);
        }
    }

    private static URL url(File file)
    {
        try {
            return file.toURI().toURL();
        }
        catch (MalformedURLException e) {
            throw new UncheckedIOException(new IOException(e));
        }
    }

    /** Java's own classes and those of the shared packages. */
    private static final class SharedClasses
            extends ClassLoader
    {
        SharedClasses()
        {
            super(getPlatformClassLoader());
        }

        @Override
        protected Class<?> findClass(String name)
                throws ClassNotFoundException
        {
            if (SHARED.stream().anyMatch(name::startsWith)) {
                return MergerLoader.class.getClassLoader().loadClass(name);
            }
            throw new ClassNotFoundException(name);
        }
    }
}
