package io.lancepart.spark;

import java.util.Locale;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.DeltaWrite;
import org.apache.spark.sql.connector.write.DeltaWriteBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsDelta;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * UPDATE, MERGE INTO and the DELETEs that are no plain filter: rows that change are removed at the places where they were
 * read and written anew, all in one commit.
 */
final class RowOperation implements SupportsDelta {
  private final PartitionedTable table;
  private final Command command;
  private LanceScanBuilder read;

  RowOperation(PartitionedTable table, Command command) {
    this.table = table;
    this.command = command;
  }

  @Override
  public Command command() {
    return command;
  }

  @Override
  public NamedReference[] rowId() {
    return Places.references();
  }

  @Override
  public boolean representUpdateAsDeleteAndInsert() {
    return true;
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    if (read != null) {
      throw new UnsupportedOperationException(command + " reads its table in two ways: use the table in Python instead");
    }
    read = new LanceScanBuilder(table, table.options(options));
    return read;
  }

  @Override
  public DeltaWriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new DeltaWriteBuilder() {
      @Override
      public DeltaWrite build() {
        return new RowWrite(table.options(CaseInsensitiveStringMap.empty()), info, table.snapshot(), read.handled(),
            read.pushed(), command.name().toLowerCase(Locale.ROOT));
      }
    };
  }

  @Override
  public String description() {
    return "lancepart " + command;
  }
}
