package io.lancepart.spark;

import io.lancepart.spark.Protocol.ScanReply;
import io.lancepart.spark.Protocol.ScanRequest;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Supplier;

/**
 * The plans of a table's scans, so that a query which reads the same columns with the same filters several times is planned once.
 * Of a table without snapshots none is kept: its next scan may find other leaves.
 */
final class ScanPlans {
  private static final int MOST = 8;

  private final boolean kept;
  private final Map<Key, ScanReply> plans = new LinkedHashMap<>(MOST, 0.75f, true) {
    @Override
    protected boolean removeEldestEntry(Map.Entry<Key, ScanReply> eldest) {
      return size() > MOST;
    }
  };

  ScanPlans(boolean kept) {
    this.kept = kept;
  }

  synchronized ScanReply computeIfAbsent(Key key, Supplier<ScanReply> plan) {
    ScanReply found = plans.get(key);
    if (found == null) {
      found = plan.get();
      if (kept) {
        plans.put(key, found);
      }
    }
    return found;
  }

  /** What a plan depends on: where the table is, and the request, which names the snapshot. */
  record Key(Map<String, String> options, ScanRequest request) {}
}
