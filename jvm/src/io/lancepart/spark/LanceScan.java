package io.lancepart.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
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
  private final ObjectNode question;
  private final Predicate[] pushed;
  private Python planned;
  private Batch batch;
  private Boolean loose;
  private boolean streaming;

  LanceScan(PartitionedTable table, Map<String, String> options, ObjectNode question, Predicate[] pushed) {
    this.table = table;
    this.options = options;
    this.question = question;
    this.pushed = pushed;
  }

  private synchronized Python planned() {
    if (planned == null) {
      planned = Python.ask(options, question);
    }
    return planned;
  }

  private synchronized Batch batch() {
    if (batch == null) {
      batch = planned().scan().toBatch();
    }
    return batch;
  }

  private JsonNode told(String key) {
    return planned().answer.get(key);
  }

  @Override
  public StructType readSchema() {
    return streaming ? table.schema() : planned().schema;
  }

  /** A stream is planned batch by batch, all columns of it: what a scan would tell beforehand is not told then. */
  @Override
  public MicroBatchStream toMicroBatchStream(String checkpoint) {
    streaming = true;
    return Python.stream(options, question.get("parallelism").asInt(), table.schema(), checkpoint);
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
      boolean few = told("tasks").asInt() <= FEW_KEYS_A_CORE * question.get("parallelism").asInt();
      loose = !joins && !(groups && few);
    }
  }

  boolean hasKeys() {
    return !streaming && !told("partitioning").isEmpty();
  }

  /** How many bytes all of its rows would take in memory, at a cautious guess. */
  long held() {
    return told("held").asLong();
  }

  private boolean isLoose() {
    return Boolean.TRUE.equals(loose);
  }

  @Override
  public Partitioning outputPartitioning() {
    JsonNode partitioning = told("partitioning");
    int tasks = told("tasks").asInt();
    return partitioning.isEmpty() || isLoose()
        ? new UnknownPartitioning(tasks)
        : new KeyGroupedPartitioning(Keys.transforms(partitioning), tasks);
  }

  /** Python's partitions are those with a key each and then, the same rows once more, those without. */
  @Override
  public synchronized InputPartition[] planInputPartitions() {
    int tasks = told("tasks").asInt();
    if (tasks == 0) {
      return new InputPartition[0];
    }
    InputPartition[] found = batch().planInputPartitions();
    JsonNode partitioning = told("partitioning");
    if (partitioning.isEmpty() || isLoose()) {
      return partitioning.isEmpty() ? found : Arrays.copyOfRange(found, tasks, found.length);
    }
    DataType[] types = Keys.types(partitioning, table.schema());
    JsonNode keys = told("keys");
    InputPartition[] keyed = new InputPartition[tasks];
    for (int i = 0; i < tasks; i++) {
      keyed[i] = new KeyedPartition(found[i], Keys.key(keys.get(i), types));
    }
    return keyed;
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new KeyedPartition.Readers(batch().createReaderFactory());
  }

  @Override
  public CustomMetric[] supportedCustomMetrics() {
    return streaming || told("tasks").asInt() == 0 ? new CustomMetric[0] : planned().scan().supportedCustomMetrics();
  }

  @Override
  public Statistics estimateStatistics() {
    OptionalLong rows = streaming ? OptionalLong.empty() : OptionalLong.of(told("rows").asLong());
    OptionalLong bytes = streaming ? OptionalLong.empty() : OptionalLong.of(told("bytes").asLong());
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
    if (tellsPlaces() || question.has("aggregates") || question.has("limit")) {
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
    ObjectNode narrower = question.deepCopy();
    for (Predicate predicate : predicates) {
      narrower.withArray("pushed").add(Expressed.json(predicate));
    }
    narrower.set("partitioning", told("partitioning"));
    planned = Python.ask(options, narrower);
    batch = null;
  }

  @Override
  public String description() {
    return "lancepart " + table.name() + " snapshot " + table.snapshot() + " pushed " + Arrays.toString(pushed)
        + (question.has("aggregates") ? " aggregates " + question.get("aggregates") : "")
        + (question.has("limit") ? " limit " + question.get("limit") : "");
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof LanceScan that
        && table.equals(that.table) && options.equals(that.options)
        && question.equals(that.question) && isLoose() == that.isLoose();
  }

  @Override
  public int hashCode() {
    return Objects.hash(table, question);
  }
}
