package io.skipbridge.trino.split;

import io.skipbridge.trino.wire.Plan;
import io.skipbridge.trino.wire.PlanRequest;
import io.skipbridge.trino.wire.PlannerAddress;
import io.skipbridge.trino.wire.PlannerClient;
import io.skipbridge.trino.wire.SplitBatch;
import io.trino.spi.predicate.TupleDomain;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;

/** From `plan` sent to the last split object, with the connector's own client; prints splits, seconds and milliseconds to the first batch. */
public final class SplitRate
{
    private SplitRate() {}

    public static void main(String[] arguments)
            throws Exception
    {
        PlannerAddress address = new PlannerAddress("127.0.0.1", Integer.parseInt(arguments[0]));
        try (PlannerClient client = new PlannerClient(address, Duration.ofSeconds(60))) {
            for (int run = 0; run < 4; run++) {
                long started = System.nanoTime();
                Plan plan = client.plan(new PlanRequest(
                        "bench", "synthetic", "", "476", "", List.of(), OptionalLong.empty(), Map.of("max_files_per_split", "1")));
                List<BridgeSplit> splits = new ArrayList<>();
                long first = 0;
                long token = 0;
                boolean finished = false;
                while (!finished) {
                    SplitBatch batch = client.nextSplits(plan.handle(), token, 50_000, 1000);
                    SplitColumns columns = new SplitColumns(batch, TupleDomain.all());
                    for (int i = 0; i < columns.splits(); i++) {
                        splits.add(new BridgeSplit(columns, i));
                    }
                    first = first == 0 && !splits.isEmpty() ? System.nanoTime() - started : first;
                    token = batch.nextToken();
                    finished = batch.finished();
                }
                double seconds = (System.nanoTime() - started) / 1e9;
                client.closePlan(plan.handle());
                System.out.println(splits.size() + " " + seconds + " " + first / 1e6);
            }
        }
    }
}
