package io.lancepart.spark;

import com.fasterxml.jackson.databind.JsonNode;
import io.lancepart.spark.Protocol.Operation;
import io.lancepart.spark.Protocol.PlainWriteRequest;
import io.lancepart.spark.Protocol.TableInfo;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.filter.AlwaysTrue;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;

/** A plain Lance table of the warehouse: it is read as a table of one leaf, and a write makes its next version. */
final class PlainTable extends PartitionedTable {
  private final List<String> path;
  private final Map<String, String> catalog;

  PlainTable(
      PathIdentifier id, StructType schema, TableInfo info, Map<String, String> properties, List<String> path,
      Map<String, String> catalog) {
    super(id, schema, info, properties);
    this.path = path;
    this.catalog = catalog;
  }

  /** The options by which Python finds a plain table: that of its warehouse, and its directory there. */
  static Map<String, String> options(Map<String, String> storage, String root, String location) {
    Map<String, String> all = new HashMap<>(storage);
    all.put(Options.PLAIN_ROOT, root);
    all.put(Options.PLAIN, location);
    return all;
  }

  @Override
  public Set<TableCapability> capabilities() {
    return EnumSet.of(TableCapability.BATCH_READ, TableCapability.BATCH_WRITE, TableCapability.TRUNCATE,
        TableCapability.OVERWRITE_BY_FILTER, TableCapability.OVERWRITE_DYNAMIC, TableCapability.AUTOMATIC_SCHEMA_EVOLUTION);
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return Inserting.isWanted(info) ? Inserting.builder(inserting(info)) : new Builder(this, info);
  }

  @Override
  Write inserting(LogicalWriteInfo info) {
    var metrics = new WriteMetrics();
    return new Inserting(info, WriteLayout.none(), metrics,
        () -> planned("rows", info.schema(), List.of(), snapshot(), metrics));
  }

  @Override
  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo operation) {
    return () -> new PlainRowOperation(this, operation.command());
  }

  /** A write of rows in some mode, planned when its tasks begin; rows that replace others are those of one version. */
  BatchWrite planned(String mode, StructType rows, List<JsonNode> pushed, Long version, WriteMetrics metrics) {
    var request = new PlainWriteRequest(path, mode, Python.json(rows), pushed, version);
    return new PlannedWrite(catalog, Operation.WRITE_PLAIN, request, rows, metrics);
  }

  @Override
  public String toString() {
    return name();
  }

  /** All rows are one partition, so that replacing those that rows touch is replacing everything. */
  private static final class Builder implements SupportsOverwriteV2, SupportsDynamicOverwrite {
    private final PlainTable table;
    private final LogicalWriteInfo info;
    private String mode = "append";
    private List<JsonNode> pushed = List.of();

    Builder(PlainTable table, LogicalWriteInfo info) {
      this.table = table;
      this.info = info;
    }

    @Override
    public WriteBuilder truncate() {
      mode = "truncate";
      return this;
    }

    @Override
    public WriteBuilder overwriteDynamicPartitions() {
      return truncate();
    }

    @Override
    public WriteBuilder overwrite(Predicate[] predicates) {
      if (Arrays.stream(predicates).allMatch(AlwaysTrue.class::isInstance)) {
        return truncate();
      }
      mode = "filter";
      pushed = FilterJson.json(Arrays.asList(predicates));
      return this;
    }

    @Override
    public Write build() {
      var metrics = new WriteMetrics();
      BatchWrite write = table.planned(mode, info.schema(), pushed, null, metrics);
      return new Planned("lancepart " + mode, SmallRowBatchWrite.of(write, info.schema()), metrics);
    }
  }

  private record Planned(String description, BatchWrite toBatch, WriteMetrics metrics) implements CountedWrite {
    @Override
    public String toString() {
      return description;
    }
  }
}
