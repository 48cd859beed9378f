package io.skipbridge.trino.read.storage;

import io.opentelemetry.api.OpenTelemetry;
import io.trino.spi.TrinoException;
import org.junit.jupiter.api.Test;

import java.util.Map;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

class TestS3Files
{
    private static final Map<String, String> GOOD = Map.of(
            "s3.endpoint", "http://127.0.0.1:1",
            "s3.region", "us-east-1",
            "s3.path-style-access", "true",
            "s3.aws-access-key", "hidden-key",
            "s3.aws-secret-key", "hidden-secret");

    @Test
    void takesTrinosProperties()
    {
        S3Files files = files(GOOD);
        assertFalse(files.toString().contains("hidden"), files.toString());
        files.close();
        files(Map.of("s3.region", "us-east-1", "s3.max-connections", "7", "s3.requester-pays", "true")).close();
    }

    @Test
    void refusesOthers()
    {
        assertTrue(problem(Map.of("s3.regoin", "us-east-1")).contains("s3.regoin"));
        assertTrue(problem(Map.of("s3.security-mapping.enabled", "true")).contains("s3.security-mapping"));
        assertTrue(problem(Map.of("s3.aws-access-key", "hidden")).contains("go together"));
    }

    @Test
    void tellsNoValueOfAProperty()
    {
        String number = problem(Map.of("s3.max-connections", "hidden"));
        assertTrue(number.contains("s3.max-connections") && !number.contains("hidden"), number);
    }

    private static String problem(Map<String, String> properties)
    {
        TrinoException problem = assertThrows(TrinoException.class, () -> files(properties));
        assertFalse(problem.getCause() != null, "a cause may hold a secret");
        return problem.getMessage();
    }

    private static S3Files files(Map<String, String> properties)
    {
        return S3Files.of(properties, OpenTelemetry.noop());
    }
}
