package io.skipbridge.trino.wire;

import java.util.ArrayList;
import java.util.List;

/** The host and port of a planner process. An IPv6 host is written in brackets. */
public record PlannerAddress(String host, int port)
{
    public static PlannerAddress parse(String text)
    {
        String trimmed = text.strip();
        int colon = trimmed.lastIndexOf(':');
        String host = colon < 0 ? "" : trimmed.substring(0, colon);
        if (host.startsWith("[") && host.endsWith("]")) {
            host = host.substring(1, host.length() - 1);
        }
        int port;
        try {
            port = Integer.parseInt(trimmed.substring(colon + 1));
        }
        catch (NumberFormatException e) {
            port = -1;
        }
        if (host.isEmpty() || host.contains("/") || port < 1 || port > 65535) {
            throw new IllegalArgumentException("'%s' is not host:port, for example 127.0.0.1:9527".formatted(trimmed));
        }
        return new PlannerAddress(host, port);
    }

    public static List<PlannerAddress> parseList(String text)
    {
        List<PlannerAddress> addresses = new ArrayList<>();
        for (String part : text.split(",")) {
            addresses.add(parse(part));
        }
        return List.copyOf(addresses);
    }

    @Override
    public String toString()
    {
        return (host.contains(":") ? "[" + host + "]" : host) + ":" + port;
    }
}
