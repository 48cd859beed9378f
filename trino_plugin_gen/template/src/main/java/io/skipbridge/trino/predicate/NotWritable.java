package io.skipbridge.trino.predicate;

/** The wire form has no word for a part of the predicate; the caller leaves that part out and says so. */
final class NotWritable
        extends Exception
{
    NotWritable(String what)
    {
        super(what, null, false, false);
    }
}
