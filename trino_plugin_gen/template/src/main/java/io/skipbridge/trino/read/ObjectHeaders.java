package io.skipbridge.trino.read;

import software.amazon.awssdk.core.interceptor.Context;
import software.amazon.awssdk.core.interceptor.ExecutionAttributes;
import software.amazon.awssdk.core.interceptor.ExecutionInterceptor;
import software.amazon.awssdk.http.SdkHttpResponse;
import software.amazon.awssdk.services.s3.model.GetObjectRequest;
import software.amazon.awssdk.utils.DateUtils;

import java.time.DateTimeException;
import java.util.Optional;

/**
 * What object the thread's last answer of a store came from: with it no request of its own is needed to see that a file is the planned one.
 * The AWS client finds this class by the resource that names it. Were it not found, there would be no headers, and the file is asked for.
 */
public final class ObjectHeaders
        implements ExecutionInterceptor
{
    private static final ThreadLocal<Version> LAST = new ThreadLocal<>();

    /** A state of an object; {@code modifiedMillis} is in whole seconds, as headers of HTTP have them. */
    record Version(long size, long modifiedMillis) {}

    static void forget()
    {
        LAST.remove();
    }

    static Optional<Version> last()
    {
        return Optional.ofNullable(LAST.get());
    }

    @Override
    public void afterTransmission(Context.AfterTransmission context, ExecutionAttributes attributes)
    {
        SdkHttpResponse response = context.httpResponse();
        if (context.request() instanceof GetObjectRequest && response.isSuccessful()) {
            parse(response.statusCode(), response.firstMatchingHeader("Content-Range"), response.firstMatchingHeader("Content-Length"), response.firstMatchingHeader("Last-Modified"))
                    .ifPresentOrElse(LAST::set, LAST::remove);
        }
    }

    /** Empty if the store does not tell, or not in the way HTTP has it. */
    static Optional<Version> parse(int status, Optional<String> range, Optional<String> length, Optional<String> modified)
    {
        int partial = 206;
        Optional<String> size = status == partial ? range.map(text -> text.substring(text.indexOf('/') + 1)) : length;
        if (size.isEmpty() || modified.isEmpty()) {
            return Optional.empty();
        }
        try {
            return Optional.of(new Version(Long.parseLong(size.get().strip()), DateUtils.parseRfc822Date(modified.get()).toEpochMilli()));
        }
        catch (NumberFormatException | DateTimeException e) {
            return Optional.empty();
        }
    }
}
