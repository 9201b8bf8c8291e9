package io.lancepart.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import io.lancepart.spark.Protocol.ScanRequest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.StructType;

/** Collects what Spark pushes down to a scan into one request to Python. */
final class LanceScanBuilder
    implements SupportsPushDownV2Filters,
        SupportsPushDownRequiredColumns,
        SupportsPushDownLimit,
        SupportsPushDownAggregates {
  private final PartitionedTable table;
  private final Map<String, String> options;
  private List<String> columns;
  private final List<Predicate> pushed = new ArrayList<>();
  private final List<Predicate> handled = new ArrayList<>();
  private ArrayNode aggregates;
  private int limit = -1;

  LanceScanBuilder(PartitionedTable table, Map<String, String> options) {
    this.table = table;
    this.options = options;
    this.columns = List.of(table.schema().fieldNames());
  }

  /** Every filter goes to Python; those that it does not answer just as Spark would are given back. */
  @Override
  public Predicate[] pushPredicates(Predicate[] predicates) {
    List<Predicate> left = new ArrayList<>();
    for (Predicate predicate : predicates) {
      boolean exact = FilterJson.isExact(predicate, table.handledColumns()) || FilterJson.testsBytes(predicate, table.schema());
      (exact ? handled : pushed).add(predicate);
      if (!exact) {
        left.add(predicate);
      }
    }
    return left.toArray(Predicate[]::new);
  }

  @Override
  public Predicate[] pushedPredicates() {
    List<Predicate> all = new ArrayList<>(handled);
    all.addAll(pushed);
    return all.toArray(Predicate[]::new);
  }

  @Override
  public void pruneColumns(StructType required) {
    List<String> wanted = Arrays.asList(required.fieldNames());
    Stream<String> known = Stream.concat(Arrays.stream(table.schema().fieldNames()), RowIdentity.names().stream());
    columns = known.filter(wanted::contains).distinct().toList();
  }

  @Override
  public boolean pushLimit(int limit) {
    this.limit = limit;
    return true;
  }

  @Override
  public boolean isPartiallyPushed() {
    return true;
  }

  @Override
  public boolean pushAggregation(Aggregation aggregation) {
    aggregates = pushed.isEmpty() ? Aggregates.json(aggregation, table.exactColumns()) : null;
    return aggregates != null;
  }

  @Override
  public Scan build() {
    List<JsonNode> wanted = new ArrayList<>();
    if (aggregates != null) {
      aggregates.forEach(wanted::add);
    }
    var request = new ScanRequest(table.snapshot(), columns, handled(), pushed(), List.of(), wanted, limit < 0 ? null : limit,
        SparkSession.active().sparkContext().defaultParallelism(), null, InlineRows.mostBytes(), null);
    return new LanceScan(table, options, request, pushedPredicates());
  }

  /** The filters that Spark does not apply again. */
  List<JsonNode> handled() {
    return FilterJson.json(handled);
  }

  /** The filters that Spark applies again. */
  List<JsonNode> pushed() {
    return FilterJson.json(pushed);
  }
}
