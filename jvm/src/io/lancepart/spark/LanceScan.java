package io.lancepart.spark;

import com.fasterxml.jackson.databind.JsonNode;
import io.lancepart.spark.Protocol.Operation;
import io.lancepart.spark.Protocol.ScanReply;
import io.lancepart.spark.Protocol.ScanRequest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportPartitioning;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.connector.read.partitioning.KeyGroupedPartitioning;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.connector.read.partitioning.UnknownPartitioning;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** A scan that Python plans once, when Spark first wants to know of it, and again when a filter is found at run time. */
final class LanceScan
    implements Scan, Batch, SupportsReportPartitioning, SupportsReportStatistics, SupportsRuntimeV2Filtering {
  private static final int FEW_KEYS_A_CORE = 4;

  private final PartitionedTable table;
  private final Map<String, String> options;
  private final ScanRequest request;
  private final Predicate[] pushed;
  private ScanReply planned;
  private StructType schema;
  private Boolean loose;
  private boolean streaming;

  LanceScan(PartitionedTable table, Map<String, String> options, ScanRequest request, Predicate[] pushed) {
    this.table = table;
    this.options = options;
    this.request = request;
    this.pushed = pushed;
  }

  private synchronized ScanReply planned() {
    if (planned == null) {
      plan(request);
    }
    return planned;
  }

  private void plan(ScanRequest wanted) {
    planned = Python.ask(options, Operation.SCAN, wanted, ScanReply.class);
    schema = Python.schema(planned.schema());
  }

  private PlannedRead read() {
    return new PlannedRead(planned().read(), schema);
  }

  @Override
  public StructType readSchema() {
    if (streaming) {
      return table.schema();
    }
    planned();
    return schema;
  }

  /** A stream is planned batch by batch, all columns of it: what a scan would tell beforehand is not told then. */
  @Override
  public MicroBatchStream toMicroBatchStream(String checkpoint) {
    streaming = true;
    return Streams.read(options, request.parallelism(), table.schema(), checkpoint);
  }

  @Override
  public Batch toBatch() {
    return this;
  }

  @Override
  public ColumnarSupportMode columnarSupportMode() {
    return streaming ? ColumnarSupportMode.UNSUPPORTED : Columns.supportMode();
  }

  /** Keys cost a task each: they are kept for a join, and for a grouping as long as they are few. */
  void useKeys(boolean joins, boolean groups) {
    if (loose == null) {
      boolean few = planned().tasks() <= FEW_KEYS_A_CORE * request.parallelism();
      loose = !joins && !(groups && few);
    }
  }

  boolean hasKeys() {
    return !streaming && !planned().partitioning().isEmpty();
  }

  /** How many bytes all of its rows would take in memory, at a cautious guess. */
  long held() {
    return planned().estimatedBytes();
  }

  private boolean isLoose() {
    return Boolean.TRUE.equals(loose);
  }

  @Override
  public Partitioning outputPartitioning() {
    JsonNode partitioning = planned().partitioning();
    int tasks = planned().tasks();
    return partitioning.isEmpty() || isLoose()
        ? new UnknownPartitioning(tasks)
        : new KeyGroupedPartitioning(Keys.transforms(partitioning), tasks);
  }

  /** Python's partitions are those with a key each and then, the same rows once more, those without. */
  @Override
  public synchronized InputPartition[] planInputPartitions() {
    int tasks = planned().tasks();
    if (tasks == 0) {
      return new InputPartition[0];
    }
    InputPartition[] found = read().partitions();
    JsonNode partitioning = planned().partitioning();
    if (partitioning.isEmpty() || isLoose()) {
      return partitioning.isEmpty() ? found : Arrays.copyOfRange(found, tasks, found.length);
    }
    DataType[] types = Keys.types(partitioning, table.schema());
    JsonNode keys = planned().keys();
    InputPartition[] keyed = new InputPartition[tasks];
    for (int i = 0; i < tasks; i++) {
      keyed[i] = new KeyedPartition(found[i], Keys.key(keys.get(i), types));
    }
    return keyed;
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return read().readers();
  }

  @Override
  public CustomMetric[] supportedCustomMetrics() {
    return streaming || planned().tasks() == 0 ? new CustomMetric[0] : read().metrics();
  }

  @Override
  public Statistics estimateStatistics() {
    OptionalLong rows = streaming ? OptionalLong.empty() : OptionalLong.of(planned().rows());
    OptionalLong bytes = streaming ? OptionalLong.empty() : OptionalLong.of(planned().bytes());
    return new Statistics() {
      @Override
      public OptionalLong sizeInBytes() {
        return bytes;
      }

      @Override
      public OptionalLong numRows() {
        return rows;
      }
    };
  }

  /**
   * The columns that a filter found at run time may be over. A scan that tells places has none: Spark would read the table
   * twice, once to find the partitions to be changed.
   */
  @Override
  public NamedReference[] filterAttributes() {
    if (tellsPlaces() || !request.aggregates().isEmpty() || request.limit() != null) {
      return new NamedReference[0];
    }
    return Arrays.stream(readSchema().fieldNames())
        .filter(table.partitionSources()::contains).map(Keys::column).toArray(NamedReference[]::new);
  }

  private boolean tellsPlaces() {
    return Arrays.stream(readSchema().fieldNames()).anyMatch(Places.names()::contains);
  }

  /** Leaves out what the other side of a join shows to be useless; keys are reported as they were promised. */
  @Override
  public synchronized void filter(Predicate[] predicates) {
    List<JsonNode> narrower = new ArrayList<>(request.pushed());
    narrower.addAll(Expressed.json(Arrays.asList(predicates)));
    plan(new ScanRequest(request.version(), request.columns(), request.handled(), narrower, request.aggregates(),
        request.limit(), request.parallelism(), planned().partitioning()));
  }

  @Override
  public String description() {
    return "lancepart " + table.name() + " snapshot " + table.snapshot() + " pushed " + Arrays.toString(pushed)
        + (request.aggregates().isEmpty() ? "" : " aggregates " + request.aggregates())
        + (request.limit() == null ? "" : " limit " + request.limit());
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof LanceScan that
        && table.equals(that.table) && options.equals(that.options)
        && request.equals(that.request) && isLoose() == that.isLoose();
  }

  @Override
  public int hashCode() {
    return Objects.hash(table, request);
  }
}
