package io.skipbridge.client;

/** Appends JSON to a text. The caller is responsible for its structure. */
public final class JsonText
{
    private final StringBuilder text = new StringBuilder();
    private boolean first = true;

    public JsonText open(char bracket)
    {
        separate();
        text.append(bracket);
        first = true;
        return this;
    }

    public JsonText close(char bracket)
    {
        text.append(bracket);
        first = false;
        return this;
    }

    public JsonText name(String name)
    {
        separate();
        quote(name);
        text.append(':');
        first = true;
        return this;
    }

    public JsonText string(String value)
    {
        separate();
        quote(value);
        return this;
    }

    /** Appends a number, true, false, null, or finished JSON. */
    public JsonText raw(String json)
    {
        separate();
        text.append(json);
        return this;
    }

    public JsonText field(String name, String value)
    {
        return name(name).string(value);
    }

    public JsonText field(String name, boolean value)
    {
        return name(name).raw(Boolean.toString(value));
    }

    public int length()
    {
        return text.length();
    }

    private void separate()
    {
        if (!first) {
            text.append(',');
        }
        first = false;
    }

    private void quote(String value)
    {
        text.append('"');
        for (int i = 0; i < value.length(); i++) {
            char c = value.charAt(i);
            if (c == '"' || c == '\\') {
                text.append('\\').append(c);
            }
            else if (c < 0x20 || Character.isSurrogate(c)) {
                // A lone surrogate has no UTF-8 form. Escaped, the reader can detect it.
                text.append(String.format("\\u%04x", (int) c));
            }
            else {
                text.append(c);
            }
        }
        text.append('"');
    }

    @Override
    public String toString()
    {
        return text.toString();
    }
}
