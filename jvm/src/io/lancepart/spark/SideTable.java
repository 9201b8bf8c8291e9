package io.lancepart.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import io.lancepart.spark.Protocol.Side;
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
 * What can only be read: what a partitioned table is made of, a plain Lance table of the warehouse or, without a side, what
 * a user of Python has planned there.
 */
record SideTable(
    String name, StructType schema, Side side, Map<String, String> properties, Map<String, String> options)
    implements SupportsRead {
  static SideTable planned(PathIdentifier path) {
    String columns = path.options().get(Options.COLUMNS);
    return new SideTable(path.shown(), schema(columns), null, Map.of(), path.options());
  }

  /** Columns that an option tells; of a user-defined type Spark would load the class that it names. */
  private static StructType schema(String text) {
    try {
      JsonNode told = Python.JSON.readTree(text == null ? "" : text);
      if (namesClass(told) || !told.path("type").asText().equals("struct")) {
        throw new IllegalArgumentException("option '" + Options.COLUMNS + "' does not tell columns of plain types");
      }
      return (StructType) DataType.fromJson(told.toString());
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException("option '" + Options.COLUMNS + "' is not JSON", e);
    }
  }

  private static boolean namesClass(JsonNode told) {
    boolean found = told.path("type").asText().equals("udt");
    for (JsonNode each : told) {
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

  /** Asks Python for the columns that are needed. */
  private static final class Builder implements SupportsPushDownRequiredColumns {
    private final SideTable table;
    private List<String> columns;

    Builder(SideTable table) {
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
      return new SideScan(table, columns, SparkSession.active().sparkContext().defaultParallelism());
    }
  }
}
