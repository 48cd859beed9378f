package io.skipbridge.trino.wire;

import io.skipbridge.client.BinaryReader;
import io.skipbridge.client.WireType;

import java.util.Arrays;
import java.util.Optional;
import java.util.OptionalDouble;

/**
 * One column as the planner describes it; statistics are absent when unknown.
 *
 * @param hiveType its type in Hive's words
 * @param engineType empty if Trino has no such type: the column only takes its place
 * @param overlapping whether the values of each file overlap those of another, so that hardly a condition on it holds for a whole file
 */
public record ColumnDescription(
        String name,
        String hiveType,
        String engineType,
        boolean partitionKey,
        Optional<String> comment,
        OptionalDouble nullsFraction,
        OptionalDouble distinctCount,
        OptionalDouble low,
        OptionalDouble high,
        OptionalDouble dataBytes,
        boolean overlapping)
{
    static ColumnDescription read(BinaryReader reader)
    {
        String name = "";
        String hiveType = "";
        String engineType = "";
        boolean partitionKey = false;
        boolean overlapping = false;
        Optional<String> comment = Optional.empty();
        OptionalDouble[] numbers = new OptionalDouble[5];
        Arrays.fill(numbers, OptionalDouble.empty());
        for (int id = reader.nextField(); id >= 0; id = reader.nextField()) {
            if (id >= 6 && id <= 10) {
                if (reader.is(WireType.DOUBLE)) {
                    numbers[id - 6] = OptionalDouble.of(reader.f64());
                }
            }
            else if (id == 4) {
                if (reader.is(WireType.BOOL)) {
                    partitionKey = reader.bool();
                }
            }
            else if (id == 11) {
                if (reader.is(WireType.BOOL)) {
                    overlapping = reader.bool();
                }
            }
            else if (reader.is(WireType.STRING)) {
                String text = reader.string();
                switch (id) {
                    case 1 -> name = text;
                    case 2 -> hiveType = text;
                    case 3 -> engineType = text;
                    case 5 -> comment = Optional.of(text);
                    default -> {}
                }
            }
        }
        return new ColumnDescription(name, hiveType, engineType, partitionKey, comment, numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], overlapping);
    }
}
