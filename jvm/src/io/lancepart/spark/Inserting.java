package io.lancepart.spark;

import java.util.function.Supplier;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;

/** The write of a MERGE that only inserts: of rows that were not found, so that the table must still be what was searched. */
record Inserting(LogicalWriteInfo info, WriteLayout layout, WriteMetrics metrics, Supplier<BatchWrite> planned)
    implements LaidOutWrite, CountedWrite {
  static boolean isWanted(LogicalWriteInfo info) {
    return info.options().containsKey(Options.INSERTING);
  }

  static WriteBuilder builder(Write write) {
    return new WriteBuilder() {
      @Override
      public Write build() {
        return write;
      }
    };
  }

  /** What was searched is known by now: Spark has planned the scans. */
  @Override
  public BatchWrite toBatch() {
    return SmallRowBatchWrite.of(planned.get(), info.schema());
  }

  @Override
  public String description() {
    return "lancepart merge";
  }

  /** Not what it writes with, which may hold credentials: Spark shows a write in its plans. */
  @Override
  public String toString() {
    return description();
  }
}
