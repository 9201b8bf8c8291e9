package io.lancepart.spark;

import io.lancepart.spark.Protocol.Operation;
import io.lancepart.spark.Protocol.Staged;
import io.lancepart.spark.Protocol.TableInfo;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.types.StructType;

/** A table that has its directory and gets its row in the warehouse only when all its rows are written. */
final class StagedPartitionedTable extends PartitionedTable implements StagedTable {
  private final LanceCatalog catalog;
  private final Staged staged;
  private boolean tried;

  StagedPartitionedTable(
      PathIdentifier id, StructType schema, TableInfo info, Map<String, String> properties, LanceCatalog catalog,
      Staged staged) {
    super(id, schema, info, properties);
    this.catalog = catalog;
    this.staged = staged;
  }

  /** Two interfaces have a default for it. */
  public CustomTaskMetric[] reportDriverMetrics() {
    return new CustomTaskMetric[0];
  }

  @Override
  public void commitStagedChanges() {
    tried = true;
    catalog.settle(Operation.PUBLISH, staged);
  }

  /** A publish that was tried has tidied up where it may; where its outcome is not known the table may be there. */
  @Override
  public void abortStagedChanges() {
    if (!tried) {
      catalog.settle(Operation.DISCARD, staged);
    }
  }
}
