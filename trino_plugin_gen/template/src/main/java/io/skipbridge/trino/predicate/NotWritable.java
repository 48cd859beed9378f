package io.skipbridge.trino.predicate;

/** A part of the predicate has no wire form. The caller omits that part and names it. */
final class NotWritable
        extends Exception
{
    NotWritable(String what)
    {
        super(what, null, false, false);
    }
}
