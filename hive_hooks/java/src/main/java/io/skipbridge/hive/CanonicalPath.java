package io.skipbridge.hive;

import org.apache.hadoop.fs.Path;

import java.net.URI;
import java.util.Locale;

/** The planner's canonical path: one per file, whatever scheme Hadoop uses. A path without a canonical form is never skipped. */
final class CanonicalPath
{
    private CanonicalPath() {}

    static String of(Path path)
    {
        URI uri = path.toUri();
        String scheme = uri.getScheme() == null ? "file" : uri.getScheme().toLowerCase(Locale.ROOT);
        String authority = uri.getAuthority() == null ? "" : uri.getAuthority();
        switch (scheme) {
            case "file":
                return "file://" + uri.getPath();
            case "s3":
            case "s3a":
            case "s3n":
                return "s3://" + authority + uri.getPath();
            case "gs":
            case "gcs":
                return "gs://" + authority + uri.getPath();
            case "hdfs":
                // A host has a port; a name without one may be a name service, whose case counts.
                return "hdfs://" + (authority.indexOf(':') < 0 ? authority : authority.toLowerCase(Locale.ROOT)) + uri.getPath();
            case "abfs":
            case "abfss":
            case "wasb":
            case "wasbs":
                int at = authority.indexOf('@');
                String host = authority.substring(at + 1).toLowerCase(Locale.ROOT).replace(".blob.", ".dfs.");
                return "abfss://" + authority.substring(0, at + 1) + host + uri.getPath();
            default:
                return scheme + "://" + authority + uri.getPath();
        }
    }
}
