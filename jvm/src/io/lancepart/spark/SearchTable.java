package io.lancepart.spark;

import com.fasterxml.jackson.databind.JsonNode;
import io.lancepart.spark.Protocol.InlineReply;
import io.lancepart.spark.Protocol.Operation;
import io.lancepart.spark.Protocol.SearchRowsRequest;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** What a search with constant arguments finds; it is made when its rows are needed, and EXPLAIN makes none. */
record SearchTable(
    String name, StructType schema, long snapshot, Map<String, JsonNode> arguments, Map<String, String> options)
    implements SupportsRead {
  @Override
  public Set<TableCapability> capabilities() {
    return EnumSet.of(TableCapability.BATCH_READ);
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap more) {
    return new Builder(this);
  }

  /** Not the options, which may hold credentials. */
  @Override
  public String toString() {
    return name;
  }

  /** Leaves out the columns that are not needed; one stays, since rows without any can't be counted. */
  private static final class Builder implements SupportsPushDownRequiredColumns {
    private final SearchTable table;
    private StructType columns;

    Builder(SearchTable table) {
      this.table = table;
      this.columns = table.schema;
    }

    @Override
    public void pruneColumns(StructType required) {
      List<String> wanted = Arrays.asList(required.fieldNames());
      StructField[] all = table.schema.fields();
      StructField[] kept = Arrays.stream(all).filter(each -> wanted.contains(each.name())).toArray(StructField[]::new);
      columns = new StructType(kept.length > 0 ? kept : new StructField[] {all[all.length - 1]});
    }

    @Override
    public Scan build() {
      return new Found(table, columns);
    }
  }

  /** The rows, all in one task and in their order. */
  private record Found(SearchTable table, StructType readSchema) implements Scan, Batch {
    @Override
    public Batch toBatch() {
      return this;
    }

    @Override
    public ColumnarSupportMode columnarSupportMode() {
      return ColumnarSupportMode.SUPPORTED;
    }

    @Override
    public InputPartition[] planInputPartitions() {
      var request = new SearchRowsRequest(table.snapshot, table.arguments, List.of(readSchema.fieldNames()));
      InlineReply reply = Python.request(table.options, Operation.SEARCH_ROWS, request, InlineReply.class);
      return new InputPartition[] {new InlineRows(reply.rows())};
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
      return InlineRows.READERS;
    }

    @Override
    public String description() {
      return table.name;
    }

    @Override
    public String toString() {
      return table.name;
    }
  }
}
