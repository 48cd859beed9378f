package io.skipbridge.trino.read.storage;

import software.amazon.awssdk.core.interceptor.Context;
import software.amazon.awssdk.core.interceptor.ExecutionAttributes;
import software.amazon.awssdk.core.interceptor.ExecutionInterceptor;
import software.amazon.awssdk.http.SdkHttpResponse;
import software.amazon.awssdk.services.s3.model.GetObjectRequest;
import software.amazon.awssdk.utils.DateUtils;

import java.time.DateTimeException;
import java.util.Optional;
import java.util.regex.Pattern;

/**
 * Remembers the headers of each thread's last reply from an object store. They show whether a file is the planned one without another request.
 * The AWS client finds this class by a resource that names it. Without headers, the file's size and time are requested.
 */
public final class ObjectHeaders
        implements ExecutionInterceptor
{
    private static final ThreadLocal<Version> LAST = new ThreadLocal<>();
    private static final ThreadLocal<Boolean> RANGE_IGNORED = new ThreadLocal<>();
    private static final int PARTIAL = 206;
    private static final Pattern AROUND = Pattern.compile("^[W/\"]+|[W/\"]+$");

    /** A version of an object; {@code modifiedMillis} is a multiple of a second, as in HTTP headers. */
    record Version(long size, long modifiedMillis, Optional<String> etag)
    {
        /** 0 without an ETag. */
        int etagHash()
        {
            return etag.map(ObjectHeaders::hash).orElse(0);
        }
    }

    static void forget()
    {
        LAST.remove();
        RANGE_IGNORED.remove();
    }

    static void remember(Version version)
    {
        LAST.set(version);
    }

    static Optional<Version> last()
    {
        return Optional.ofNullable(LAST.get());
    }

    /** Whether the last reply began at the file's first byte, though later ones were asked for: the client takes them for those. */
    static boolean rangeIgnored()
    {
        return RANGE_IGNORED.get() != null;
    }

    static void rememberIgnoredRange()
    {
        RANGE_IGNORED.set(true);
    }

    @Override
    public void afterTransmission(Context.AfterTransmission context, ExecutionAttributes attributes)
    {
        SdkHttpResponse response = context.httpResponse();
        if (context.request() instanceof GetObjectRequest asked && response.isSuccessful()) {
            forget();
            if (ignoresRange(response.statusCode(), Optional.ofNullable(asked.range()), response.firstMatchingHeader("Content-Range"))) {
                rememberIgnoredRange();
            }
            parse(
                    response.statusCode(),
                    response.firstMatchingHeader("Content-Range"),
                    response.firstMatchingHeader("Content-Length"),
                    response.firstMatchingHeader("Last-Modified"),
                    response.firstMatchingHeader("ETag"))
                    .ifPresent(ObjectHeaders::remember);
        }
    }

    static boolean ignoresRange(int status, Optional<String> asked, Optional<String> range)
    {
        return status != PARTIAL && range.isEmpty() && asked.filter(text -> !text.startsWith("bytes=0-")).isPresent();
    }

    /** Empty if headers other than the ETag are missing or malformed. */
    static Optional<Version> parse(int status, Optional<String> range, Optional<String> length, Optional<String> modified, Optional<String> etag)
    {
        Optional<String> size = status == PARTIAL ? range.map(text -> text.substring(text.indexOf('/') + 1)) : length;
        if (size.isEmpty() || modified.isEmpty()) {
            return Optional.empty();
        }
        try {
            return Optional.of(new Version(Long.parseLong(size.get().strip()), DateUtils.parseRfc822Date(modified.get()).toEpochMilli(), etag));
        }
        catch (NumberFormatException | DateTimeException e) {
            return Optional.empty();
        }
    }

    /** As docs/reference/wire.md tells it, and bridge/planner/splits/etags.py makes it. */
    static int hash(String etag)
    {
        String text = AROUND.matcher(etag).replaceAll("");
        return text.chars().allMatch(letter -> letter < 128) ? text.hashCode() : 0;
    }
}
