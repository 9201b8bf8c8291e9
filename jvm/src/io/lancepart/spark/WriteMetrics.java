package io.lancepart.spark;

import io.lancepart.spark.Protocol.Committed;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** What a write shows in Spark's UI: what its tasks reported to the commit. */
final class WriteMetrics {
  private volatile Committed done;

  static CustomMetric[] supported() {
    return new CustomMetric[] {new RowsWritten(), new RowsRemoved(), new FilesWritten(), new BytesWritten()};
  }

  void done(Committed reply) {
    done = reply;
  }

  CustomTaskMetric[] values() {
    Committed found = done;
    return found == null ? new CustomTaskMetric[0] : new CustomTaskMetric[] {
        new Value(RowsWritten.NAME, found.rows()), new Value(RowsRemoved.NAME, found.removed()),
        new Value(FilesWritten.NAME, found.files()), new Value(BytesWritten.NAME, found.bytes())};
  }

  record Value(String name, long value) implements CustomTaskMetric {}
}
