package io.lancepart.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
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
  private final ObjectNode question;
  private final Python planned;
  private final Scan inner;
  private Batch batch;

  SideScan(SideTable table, ObjectNode question) {
    this.table = table;
    this.question = question;
    this.planned = Python.ask(table.options(), question);
    this.inner = planned.scan();
  }

  private synchronized Batch batch() {
    if (batch == null) {
      batch = inner.toBatch();
    }
    return batch;
  }

  @Override
  public StructType readSchema() {
    return planned.schema;
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
    return batch().planInputPartitions();
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new KeyedPartition.Readers(batch().createReaderFactory());
  }

  @Override
  public CustomMetric[] supportedCustomMetrics() {
    return inner.supportedCustomMetrics();
  }

  @Override
  public String description() {
    return "lancepart " + table.name();
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof SideScan that && table.equals(that.table) && question.equals(that.question);
  }

  @Override
  public int hashCode() {
    return Objects.hash(table, question);
  }
}
