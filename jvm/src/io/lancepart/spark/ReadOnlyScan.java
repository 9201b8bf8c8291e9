package io.lancepart.spark;

import io.lancepart.spark.Protocol.HandedOverRequest;
import io.lancepart.spark.Protocol.Operation;
import io.lancepart.spark.Protocol.RowsReply;
import io.lancepart.spark.Protocol.ReadOnlyRequest;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalLong;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.types.StructType;

/** Some columns of what can only be read, or work that gives rows. */
final class ReadOnlyScan implements Scan, Batch, SupportsReportStatistics {
  private final Object source;
  private final String name;
  private final PlannedRead planned;
  private final Long rows;
  private final Long bytes;

  /** What is read is the same wherever the source is equal. */
  ReadOnlyScan(Object source, String name, PlannedRead planned) {
    this(source, name, planned, null, null);
  }

  private ReadOnlyScan(Object source, String name, PlannedRead planned, Long rows, Long bytes) {
    this.source = source;
    this.name = name;
    this.planned = planned;
    this.rows = rows;
    this.bytes = bytes;
  }

  static ReadOnlyScan of(ReadOnlyTable table, List<String> columns, int parallelism) {
    RowsReply reply = table.source() == null
        ? Python.request(table.options(), Operation.HANDED_OVER, new HandedOverRequest(columns), RowsReply.class)
        : Python.request(
            table.options(), Operation.READ_ONLY, new ReadOnlyRequest(table.source(), columns, parallelism), RowsReply.class);
    var planned = new PlannedRead(reply.read(), Python.schema(reply.schema()));
    return new ReadOnlyScan(List.of(table, columns), table.name(), planned, reply.rows(), reply.bytes());
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
    return Stream.concat(Stream.of(new RowsFound()), Arrays.stream(planned.metrics())).toArray(CustomMetric[]::new);
  }

  @Override
  public Statistics estimateStatistics() {
    return new Statistics() {
      @Override
      public OptionalLong sizeInBytes() {
        return known(bytes);
      }

      @Override
      public OptionalLong numRows() {
        return known(rows);
      }
    };
  }

  private static OptionalLong known(Long number) {
    return number == null ? OptionalLong.empty() : OptionalLong.of(number);
  }

  @Override
  public String description() {
    return "lancepart " + name;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof ReadOnlyScan that && source.equals(that.source);
  }

  @Override
  public int hashCode() {
    return source.hashCode();
  }
}
