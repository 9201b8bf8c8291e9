package io.lancepart.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.types.StructType;

/** A table that has its directory and gets its row in the warehouse only when all its rows are written. */
final class StagedPartitionedTable extends PartitionedTable implements StagedTable {
  private final LanceCatalog catalog;
  private final JsonNode staged;

  StagedPartitionedTable(
      PathIdentifier id, StructType schema, JsonNode told, Map<String, String> properties, LanceCatalog catalog,
      JsonNode staged) {
    super(id, schema, told, properties);
    this.catalog = catalog;
    this.staged = staged;
  }

  /** Two interfaces have a default for it. */
  public CustomTaskMetric[] reportDriverMetrics() {
    return new CustomTaskMetric[0];
  }

  @Override
  public void commitStagedChanges() {
    catalog.settle("publish", staged);
  }

  @Override
  public void abortStagedChanges() {
    catalog.settle("discard", staged);
  }
}
