package io.skipbridge.trino.read.storage;

import java.io.IOException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** What Azure answered. Its client puts advice on debugging signatures before the status, the code and the sentence. */
final class AzureAnswer
{
    private static final Pattern STATUS = Pattern.compile("Status code (\\d{3}),");
    private static final Pattern CODE = Pattern.compile("<Code>([^<]+)</Code>");
    private static final Pattern SENTENCE = Pattern.compile("<Message>([^<\\n]+)");

    private AzureAnswer() {}

    /** The same problem in Azure's own words; the problem itself if it is none of Azure's answers. */
    static IOException of(IOException problem)
    {
        for (Throwable each = problem; each != null; each = each.getCause()) {
            Matcher status = STATUS.matcher(String.valueOf(each.getMessage()));
            if (status.find()) {
                IOException said = new IOException(sentence(status.group(1), each.getMessage().substring(status.end())));
                said.addSuppressed(problem);
                return said;
            }
        }
        return problem;
    }

    private static String sentence(String status, String body)
    {
        String words = (first(CODE, body) + " " + first(SENTENCE, body).replaceFirst("\\.$", "")).strip();
        String answer = words.isEmpty() ? "Azure answers " + status : "Azure answers %s: %s".formatted(status, words);
        return status.equals("401") || status.equals("403")
                ? answer + ". Check azure.auth-type, azure.access-key and the other azure properties of the catalog, and what these credentials may read"
                : answer;
    }

    private static String first(Pattern pattern, String body)
    {
        Matcher found = pattern.matcher(body);
        return found.find() ? found.group(1).strip() : "";
    }
}
