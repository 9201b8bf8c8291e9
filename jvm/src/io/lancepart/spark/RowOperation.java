package io.lancepart.spark;

import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** UPDATE, MERGE INTO and the DELETEs of a partitioned table that are no plain filter. */
final class RowOperation implements RowAddressOperation {
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
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    if (read != null) {
      throw new UnsupportedOperationException(command + " reads its table in two ways: use the table in Python instead");
    }
    read = new LanceScanBuilder(table, table.options(options));
    return read;
  }

  @Override
  public WriteLayout layout(LogicalWriteInfo info) {
    return table.layout(info);
  }

  @Override
  public BatchWrite planned(LogicalWriteInfo info, WriteLayout layout, StructType rows, WriteMetrics metrics) {
    List<LanceScanBuilder> reads = read == null ? List.of() : List.of(read);
    return table.rows(command.name().toLowerCase(Locale.ROOT), layout.with(table.options(info.options())), rows, reads, metrics);
  }
}
