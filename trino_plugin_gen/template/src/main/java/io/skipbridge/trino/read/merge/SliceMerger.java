package io.skipbridge.trino.read.merge;

/**
 * Merges the logs of a file slice into the rows of its base file. The implementation has a class path of its own, which shares with the plugin
 * only this package, the engine's interface to plugins, and slices.
 */
public interface SliceMerger
{
    /**
     * Starts to merge. Reads the logs when the first page is asked for.
     *
     * @throws UnsupportedSlice if the slice needs what the implementation does not have
     */
    MergedPages merge(SliceRequest request);
}
