package io.lancepart.spark;

import java.util.function.Function;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.DeltaBatchWrite;
import org.apache.spark.sql.connector.write.DeltaWrite;
import org.apache.spark.sql.connector.write.DeltaWriter;
import org.apache.spark.sql.connector.write.DeltaWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Rows that go and rows that come, to Python as one table: a row has either its columns or the identity of one that goes. */
record RowWrite(
    LogicalWriteInfo info, WriteLayout layout, WriteMetrics metrics, Function<StructType, BatchWrite> planned)
    implements DeltaWrite, LaidOutWrite, CountedWrite {
  @Override
  public DeltaBatchWrite toBatch() {
    StructType ids = info.rowIdSchema().orElseThrow();
    StructType rows = joined(info.schema(), ids);
    return new Batch(planned.apply(rows), info.schema().size(), ids.size());
  }

  private static StructType joined(StructType columns, StructType ids) {
    return new StructType(Stream.of(columns, ids).flatMap(each -> Stream.of(each.fields()))
        .map(each -> new StructField(each.name(), each.dataType(), true, each.metadata()))
        .toArray(StructField[]::new));
  }

  @Override
  public String description() {
    return "lancepart rows";
  }

  /** Not what it writes with, which may hold credentials: Spark shows a write in its plans. */
  @Override
  public String toString() {
    return description();
  }

  record Batch(BatchWrite inner, int columns, int ids) implements BatchWriteOver, DeltaBatchWrite {
    @Override
    public DeltaWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
      return new Factory(inner.createBatchWriterFactory(info), columns, ids);
    }
  }

  record Factory(DataWriterFactory inner, int columns, int ids) implements DeltaWriterFactory {
    @Override
    public DeltaWriter<InternalRow> createWriter(int partition, long task) {
      return new QueuedRowWriter(inner.createWriter(partition, task), columns, ids);
    }
  }
}
