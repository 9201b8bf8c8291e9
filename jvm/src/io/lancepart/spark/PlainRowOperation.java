package io.lancepart.spark;

import java.util.List;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** UPDATE, MERGE INTO and DELETE of a plain Lance table: its next version lacks the rows that go, and has those that come. */
record PlainRowOperation(PlainTable table, Command command) implements RowAddressOperation {
  private static final String ROWS = "rows";

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return table.newScanBuilder(options);
  }

  @Override
  public WriteLayout layout(LogicalWriteInfo info) {
    return WriteLayout.none();
  }

  @Override
  public BatchWrite planned(LogicalWriteInfo info, WriteLayout layout, StructType rows, WriteMetrics metrics) {
    return table.planned(ROWS, rows, List.of(), table.snapshot(), metrics);
  }
}
