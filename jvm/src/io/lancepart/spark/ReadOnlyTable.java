package io.lancepart.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import io.lancepart.spark.Protocol.ReadOnlySource;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * What can only be read: what a partitioned table is made of or, without a source, what a user of Python has planned there.
 */
record ReadOnlyTable(
    String name, StructType schema, ReadOnlySource source, Map<String, String> properties, Map<String, String> options)
    implements SupportsRead {
  static ReadOnlyTable planned(PathIdentifier path) {
    String columns = path.options().get(Options.COLUMNS);
    return new ReadOnlyTable(path.shown(), schema(columns), null, Map.of(), path.options());
  }

  /** The columns in an option; of a user-defined type Spark would load the class that it names. */
  private static StructType schema(String text) {
    try {
      JsonNode json = Python.JSON.readTree(text == null ? "" : text);
      if (namesClass(json) || !json.path("type").asText().equals("struct")) {
        throw new IllegalArgumentException("option '" + Options.COLUMNS + "' does not name columns of plain types");
      }
      return (StructType) DataType.fromJson(json.toString());
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException("option '" + Options.COLUMNS + "' is not JSON", e);
    }
  }

  private static boolean namesClass(JsonNode json) {
    boolean found = json.path("type").asText().equals("udt");
    for (JsonNode each : json) {
      found |= namesClass(each);
    }
    return found;
  }

  @Override
  public Set<TableCapability> capabilities() {
    return EnumSet.of(TableCapability.BATCH_READ);
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap more) {
    return new Builder(this);
  }

  @Override
  public String toString() {
    return name;
  }

  /** Has Python read only the columns that are needed. */
  private static final class Builder implements SupportsPushDownRequiredColumns {
    private final ReadOnlyTable table;
    private List<String> columns;

    Builder(ReadOnlyTable table) {
      this.table = table;
      this.columns = List.of(table.schema.fieldNames());
    }

    @Override
    public void pruneColumns(StructType required) {
      List<String> wanted = Arrays.asList(required.fieldNames());
      columns = Arrays.stream(table.schema.fieldNames()).filter(wanted::contains).toList();
    }

    @Override
    public Scan build() {
      return ReadOnlyScan.of(table, columns, SparkSession.active().sparkContext().defaultParallelism());
    }
  }
}
