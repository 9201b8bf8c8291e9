package io.lancepart.spark;

import io.lancepart.spark.Protocol.HandedOverRequest;
import io.lancepart.spark.Protocol.Operation;
import io.lancepart.spark.Protocol.RowsReply;
import io.lancepart.spark.Protocol.SideRequest;
import java.util.List;
import java.util.Objects;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.StructType;

/** Some columns of what can only be read. */
final class SideScan implements Scan, Batch {
  private final SideTable table;
  private final List<String> columns;
  private final PlannedRead planned;

  SideScan(SideTable table, List<String> columns, int parallelism) {
    this.table = table;
    this.columns = columns;
    RowsReply reply = table.side() == null
        ? Python.ask(table.options(), Operation.HANDED_OVER, new HandedOverRequest(columns), RowsReply.class)
        : Python.ask(
            table.options(), Operation.SIDE, new SideRequest(table.side(), columns, parallelism), RowsReply.class);
    this.planned = new PlannedRead(reply.read(), Python.schema(reply.schema()));
  }

  @Override
  public StructType readSchema() {
    return planned.schema();
  }

  @Override
  public Batch toBatch() {
    return this;
  }

  @Override
  public ColumnarSupportMode columnarSupportMode() {
    return Columns.supportMode();
  }

  @Override
  public InputPartition[] planInputPartitions() {
    return planned.partitions();
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return planned.readers();
  }

  @Override
  public CustomMetric[] supportedCustomMetrics() {
    return planned.metrics();
  }

  @Override
  public String description() {
    return "lancepart " + table.name();
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof SideScan that && table.equals(that.table) && columns.equals(that.columns);
  }

  @Override
  public int hashCode() {
    return Objects.hash(table, columns);
  }
}
