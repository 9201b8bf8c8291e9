package io.lancepart.spark;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.AtomicType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.StructType;

/**
 * Rows on their way to Python, a batch at a time. Spark looks after each row how large the batch has become, which takes
 * as long as writing the row: where rows are small, as the first ones show, a batch is as many rows as Spark's setting says.
 */
record SmallRowBatchWrite(BatchWrite inner, boolean mayBeSmall) implements BatchWriteOver {
  private static final String MOST_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch";
  private static final int SAMPLE = 100;
  private static final int SMALL = 1024;

  /** A user's own limit stays, and so does Spark's for columns whose values may be anything. */
  static BatchWrite of(BatchWrite inner, StructType schema) {
    boolean plain = Arrays.stream(schema.fields())
        .allMatch(each -> each.dataType() instanceof AtomicType && !(each.dataType() instanceof BinaryType));
    return new SmallRowBatchWrite(inner, plain && !SQLConf.get().contains(MOST_BYTES));
  }

  @Override
  public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
    DataWriterFactory factory = inner.createBatchWriterFactory(info);
    return mayBeSmall ? new Factory(factory) : factory;
  }

  record Factory(DataWriterFactory inner) implements DataWriterFactory {
    @Override
    public DataWriter<InternalRow> createWriter(int partition, long task) {
      return new Writer(inner.createWriter(partition, task));
    }
  }

  record Writer(DataWriter<InternalRow> inner) implements DataWriter<InternalRow> {
    @Override
    public void writeAll(Iterator<InternalRow> rows) throws IOException {
      List<InternalRow> first = new ArrayList<>();
      boolean small = true;
      while (first.size() < SAMPLE && rows.hasNext()) {
        InternalRow row = rows.next();
        small &= row instanceof UnsafeRow flat && flat.getSizeInBytes() <= SMALL;
        first.add(row.copy());
      }
      Iterator<InternalRow> all = new Chained(first.iterator(), rows);
      if (!small) {
        inner.writeAll(all);
        return;
      }
      var conf = new SQLConf();
      conf.settings().putAll(SQLConf.get().settings());
      conf.setConfString(MOST_BYTES, Integer.toString(Integer.MAX_VALUE));
      IOException failure = SQLConf.withExistingConf(conf, () -> {
        try {
          inner.writeAll(all);
          return null;
        } catch (IOException e) {
          return e;
        }
      });
      if (failure != null) {
        throw failure;
      }
    }

    @Override
    public void write(InternalRow row) throws IOException {
      inner.write(row);
    }

    @Override
    public WriterCommitMessage commit() throws IOException {
      return inner.commit();
    }

    @Override
    public void abort() throws IOException {
      inner.abort();
    }

    @Override
    public void close() throws IOException {
      inner.close();
    }

    @Override
    public CustomTaskMetric[] currentMetricsValues() {
      return inner.currentMetricsValues();
    }
  }

  /** The rows that were looked at, and then the others. */
  record Chained(Iterator<InternalRow> first, Iterator<InternalRow> rest) implements Iterator<InternalRow> {
    @Override
    public boolean hasNext() {
      return first.hasNext() || rest.hasNext();
    }

    @Override
    public InternalRow next() {
      return first.hasNext() ? first.next() : rest.next();
    }
  }
}
