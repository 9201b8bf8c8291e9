package io.lancepart.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Locale;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * UPDATE, MERGE INTO and the DELETEs that are no plain filter: the rows that the scan's filters match are read, and what
 * Spark makes of them takes their place in one commit.
 */
final class RowOperation implements RowLevelOperation {
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
    read = new LanceScanBuilder(table, table.options(options), true);
    return read;
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new WriteBuilder() {
      @Override
      public Write build() {
        ObjectNode question = read.filters(Python.JSON.createObjectNode());
        question.put("ask", "write").put("mode", "rows").put("version", table.snapshot());
        question.put("command", command.name().toLowerCase(Locale.ROOT));
        return new LanceWrite(table.options(CaseInsensitiveStringMap.empty()), info, question);
      }
    };
  }

  @Override
  public String description() {
    return "lancepart " + command;
  }
}
