package io.lancepart.spark;

import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DeltaWrite;
import org.apache.spark.sql.connector.write.DeltaWriteBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsDelta;
import org.apache.spark.sql.types.StructType;

/** A statement that removes rows where they were read, by leaf and row address, and writes changed ones, in one commit. */
interface RowAddressOperation extends SupportsDelta {
  /** How rows come to the tasks that write them; a statement that only removes some has none. */
  WriteLayout layout(LogicalWriteInfo info);

  /** The write of rows with these columns: those of the table, and the identity of rows that go. */
  BatchWrite planned(LogicalWriteInfo info, WriteLayout layout, StructType rows, WriteMetrics metrics);

  @Override
  default NamedReference[] rowId() {
    return RowIdentity.references();
  }

  @Override
  default boolean representUpdateAsDeleteAndInsert() {
    return true;
  }

  @Override
  default DeltaWriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new DeltaWriteBuilder() {
      @Override
      public DeltaWrite build() {
        var metrics = new WriteMetrics();
        WriteLayout layout = info.schema().isEmpty() ? WriteLayout.none() : layout(info);
        return new RowWrite(info, layout, metrics, rows -> planned(info, layout, rows, metrics));
      }
    };
  }

  @Override
  default String description() {
    return "lancepart " + command();
  }
}
