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
import java.util.Set;
import java.util.stream.Stream;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
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
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * A scan that Python plans once, when Spark first wants to know of it, and again when a filter is found at run time that
 * may leave something out.
 */
final class LanceScan
    implements Scan, Batch, SupportsReportPartitioning, SupportsReportStatistics, SupportsRuntimeV2Filtering {
  private static final int FEW_KEYS_A_CORE = 4;
  private static final String RUNTIME_FILTER_BYTES = "spark.lancepart.runtimeFilterBytes";
  private static final long LEAST_FILTERED_BYTES = 8L << 20;
  private static final String NARROWED_BYTES = "spark.lancepart.narrowedBytes";
  private static final long LEAST_NARROWED_BYTES = 2L << 20;

  private final PartitionedTable table;
  private final Map<String, String> options;
  private final ScanRequest request;
  private final Predicate[] pushed;
  private ScanReply planned;
  private ScanRequest plannedFor;
  private StructType schema;
  private Boolean unkeyed;
  private boolean streaming;
  private long planningNanos;

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
    if (wanted.equals(plannedFor)) {
      return;
    }
    long began = System.nanoTime();
    planned = table.plans().computeIfAbsent(new ScanPlans.Key(options, wanted),
        () -> Python.request(options, Operation.SCAN, wanted, ScanReply.class));
    plannedFor = wanted;
    schema = Python.schema(planned.schema());
    planningNanos += System.nanoTime() - began;
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

  /** A stream is planned batch by batch, all columns of it: nothing is planned beforehand. */
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
    if (unkeyed == null) {
      boolean few = planned().tasks() <= FEW_KEYS_A_CORE * request.parallelism();
      unkeyed = !joins && !(groups && few);
    }
  }

  /** Whether a plan of its own for fewer columns costs less than reading them. */
  boolean isWorthNarrowing() {
    return !streaming && request.aggregates().isEmpty() && request.limit() == null && !identifiesRows()
        && request.partial() == null && !planned().read().inline() && planned().bytes() >= setting(NARROWED_BYTES, LEAST_NARROWED_BYTES);
  }

  /** Whether Python has a filter, and keeps exactly the rows that Spark would. */
  boolean appliesExactly(Predicate predicate) {
    return Arrays.asList(pushed).contains(predicate) && table.isExact(predicate);
  }

  /** The same scan in some of its columns, in their order, with filters that Spark does not apply again. */
  LanceScan narrower(List<String> columns, Set<Predicate> applied) {
    return narrower(columns, applied, request.partial());
  }

  /** A scan whose tasks give the partial aggregates of the rows that all of its filters match, exactly. */
  LanceScan aggregated(List<String> columns, Set<Predicate> applied, JsonNode partial) {
    return narrower(columns, applied, partial);
  }

  private LanceScan narrower(List<String> columns, Set<Predicate> applied, JsonNode partial) {
    int before = request.handled().size();
    List<Predicate> handled = new ArrayList<>(Arrays.asList(pushed).subList(0, before));
    List<Predicate> left = new ArrayList<>();
    for (Predicate each : Arrays.asList(pushed).subList(before, pushed.length)) {
      (applied.contains(each) ? handled : left).add(each);
    }
    var narrower = new ScanRequest(request.version(), columns, FilterJson.json(handled), FilterJson.json(left),
        request.runtime(), request.aggregates(), request.limit(), request.parallelism(), request.partitioning(),
        request.inlineBytes(), partial);
    Predicate[] all = Stream.concat(handled.stream(), left.stream()).toArray(Predicate[]::new);
    var found = new LanceScan(table, options, narrower, all);
    found.unkeyed = unkeyed;
    return found;
  }

  boolean isPartitionedBy(String column) {
    return table.partitionSources().contains(column);
  }

  boolean hasKeys() {
    return !streaming && !planned().partitioning().isEmpty();
  }

  /** How many bytes all of its rows would take in memory, at a cautious guess. */
  long estimatedBytes() {
    return planned().estimatedBytes();
  }

  /** Whether nothing is planned to go by its partitioning. */
  boolean needsNoKeys() {
    return isUnkeyed() || planned().partitioning().isEmpty();
  }

  private boolean isUnkeyed() {
    return Boolean.TRUE.equals(unkeyed);
  }

  @Override
  public Partitioning outputPartitioning() {
    JsonNode partitioning = planned().partitioning();
    int tasks = planned().tasks();
    return partitioning.isEmpty() || isUnkeyed()
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
    if (partitioning.isEmpty() || isUnkeyed()) {
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
    if (streaming) {
      return new CustomMetric[0];
    }
    CustomMetric[] own = {
        new LeavesRead(), new LeavesPruned(), new FragmentsRead(), new FileBytes(), new RowsFound(), new PlanningTime()};
    CustomMetric[] python = planned().tasks() == 0 || planned().read().inline() ? new CustomMetric[0] : read().metrics();
    return Stream.of(own, python).flatMap(Stream::of).toArray(CustomMetric[]::new);
  }

  @Override
  public synchronized CustomTaskMetric[] reportDriverMetrics() {
    if (streaming) {
      return new CustomTaskMetric[0];
    }
    ScanReply found = planned();
    return new CustomTaskMetric[] {
        new Value(LeavesRead.NAME, found.leavesRead()),
        new Value(LeavesPruned.NAME, found.leavesPruned()),
        new Value(FragmentsRead.NAME, found.fragments()),
        new Value(FileBytes.NAME, found.fileBytes()),
        new Value(PlanningTime.NAME, planningNanos / 1_000_000)};
  }

  private record Value(String name, long value) implements CustomTaskMetric {}

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
   * The columns that a filter found at run time may be over. A scan that identifies its rows has none: Spark would read the
   * table twice, once to find the partitions to be changed. Nor has a small one: each filter is a subquery to Spark, which it
   * plans with all the subqueries inside, so that a query of many such tables would not be planned in minutes.
   */
  @Override
  public NamedReference[] filterAttributes() {
    boolean isSmall = !streaming && isSmall();
    if (isSmall || identifiesRows() || !request.aggregates().isEmpty() || request.partial() != null || request.limit() != null) {
      return new NamedReference[0];
    }
    return Arrays.stream(readSchema().fieldNames())
        .filter(table.partitionSources()::contains).map(Keys::column).toArray(NamedReference[]::new);
  }

  boolean identifiesRows() {
    return Arrays.stream(readSchema().fieldNames()).anyMatch(RowIdentity.names()::contains);
  }

  private boolean isSmall() {
    return planned().read().inline() || planned().leavesRead() < 2
        || planned().bytes() < setting(RUNTIME_FILTER_BYTES, LEAST_FILTERED_BYTES);
  }

  private static long setting(String name, long bytes) {
    return JavaUtils.byteStringAsBytes(SQLConf.get().getConfString(name, bytes + "b"));
  }

  /** Leaves out what the other side of a join shows to be useless; keys are reported as they were promised. */
  @Override
  public synchronized void filter(Predicate[] predicates) {
    JsonNode keys = planned().partitioning();
    if (!RuntimeKeys.mayLeaveOut(predicates, planned().leavesRead() + planned().leavesPruned())) {
      plan(request);
      return;
    }
    plan(new ScanRequest(request.version(), request.columns(), request.handled(), request.pushed(),
        FilterJson.json(Arrays.asList(predicates)), request.aggregates(), request.limit(), request.parallelism(), keys, 0,
        request.partial()));
  }

  @Override
  public String description() {
    return "lancepart " + table.name() + " snapshot " + table.snapshot() + filters()
        + (request.aggregates().isEmpty() ? "" : " aggregates " + request.aggregates())
        + (request.partial() == null ? "" : " partial aggregates by " + request.partial().get("keys"))
        + (request.limit() == null ? "" : " limit " + request.limit())
        + (streaming ? "" : leaves(planned()));
  }

  /**
   * The filters that Lance applies just as Spark would, then those of which it applies a wider form, so that they leave out
   * leaves and rows and Spark applies them again.
   */
  private String filters() {
    List<Predicate> exact = new ArrayList<>();
    List<Predicate> wider = new ArrayList<>();
    List<Integer> unused = streaming ? List.of() : planned().unused();
    int handled = request.handled().size();
    for (int i = 0; i < pushed.length; i++) {
      if (i < handled || table.isExact(pushed[i]) || FilterJson.testsNull(pushed[i])) {
        exact.add(pushed[i]);
      } else if (!unused.contains(i - handled)) {
        wider.add(pushed[i]);
      }
    }
    return " pushed " + exact + (wider.isEmpty() ? "" : " pruning by " + wider);
  }

  /** How many leaves are read, and why not fewer. */
  private static String leaves(ScanReply found) {
    long all = found.leavesRead() + found.leavesPruned();
    String reasons = found.reasons().isEmpty() ? "" : " (" + String.join("; ", found.reasons()) + ")";
    return " leaves " + found.leavesRead() + " of " + all + reasons;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof LanceScan that
        && table.equals(that.table) && options.equals(that.options)
        && request.equals(that.request) && isUnkeyed() == that.isUnkeyed();
  }

  @Override
  public int hashCode() {
    return Objects.hash(table, request);
  }
}
