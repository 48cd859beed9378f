package io.skipbridge.trino.read.storage;

import org.junit.jupiter.api.Test;

import java.io.IOException;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;

class TestAzureAnswer
{
    private static final String ADVICE = "If you are using a StorageSharedKeyCredential, compare the string to sign.\n";

    @Test
    void isWhatAzureSays()
    {
        IOException problem = problem("Status code 500, \"<?xml version=\"1.0\"?>\n<Error>\n  <Code>InternalError</Code>\n"
                + "  <Message>The server failed.\nRequestId:1\nTime:2</Message>\n</Error>\"");
        IOException said = AzureAnswer.of(problem);
        assertEquals("Azure answers 500: InternalError The server failed", said.getMessage());
        assertSame(problem, said.getSuppressed()[0]);
    }

    @Test
    void tellsWhereTheCredentialsAre()
    {
        assertEquals(
                "Azure answers 403. Check azure.auth-type, azure.access-key and the other azure properties of the catalog, and what these credentials may read",
                AzureAnswer.of(problem("Status code 403, (empty body)")).getMessage());
    }

    @Test
    void isTheProblemItselfWithoutAnAnswer()
    {
        for (String words : new String[] {"connection reset", null}) {
            IOException problem = problem(words);
            assertSame(problem, AzureAnswer.of(problem));
        }
    }

    private static IOException problem(String words)
    {
        return new IOException("Azure service error reading file", new RuntimeException(words == null ? null : ADVICE + words));
    }
}
