package io.lancepart.spark;

import io.lancepart.spark.Protocol.Operation;
import io.lancepart.spark.Protocol.PlainWriteRequest;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A plain Lance table of the warehouse: it is read as it is, and a write makes its next version. */
record PlainTable(ReadOnlyTable inner, List<String> path)
    implements SupportsRead, SupportsWrite, SupportsRowLevelOperations, SupportsMetadataColumns {
  @Override
  public String name() {
    return inner.name();
  }

  @Override
  public StructType schema() {
    return inner.schema();
  }

  @Override
  public Map<String, String> properties() {
    return inner.properties();
  }

  @Override
  public Set<TableCapability> capabilities() {
    return EnumSet.of(TableCapability.BATCH_READ, TableCapability.BATCH_WRITE, TableCapability.TRUNCATE);
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return inner.newScanBuilder(options);
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new Builder(this, info);
  }

  @Override
  public MetadataColumn[] metadataColumns() {
    return RowIdentity.columns();
  }

  @Override
  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo operation) {
    return () -> new PlainRowOperation(this, operation.command());
  }

  /** A write of rows in some mode, planned when its tasks begin; rows that replace others are those of one version. */
  BatchWrite planned(String mode, StructType rows, Long version) {
    var request = new PlainWriteRequest(path, mode, Python.json(rows), version);
    return new PlannedWrite(inner.options(), Operation.WRITE_PLAIN, request, rows);
  }

  @Override
  public String toString() {
    return name();
  }

  private static final class Builder implements SupportsTruncate {
    private final PlainTable table;
    private final LogicalWriteInfo info;
    private String mode = "append";

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
    public Write build() {
      BatchWrite write = table.planned(mode, info.schema(), null);
      return new Planned("lancepart " + mode, SmallRowBatchWrite.of(write, info.schema()));
    }
  }

  private record Planned(String description, BatchWrite toBatch) implements Write {}
}
