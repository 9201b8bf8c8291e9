package io.lancepart.spark;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Rows that the planning service sent itself, as a stream of Arrow's: no Python worker is needed to read them. */
record InlineRows(byte[] arrow) implements InputPartition {
  static final PartitionReaderFactory READERS = new Readers();
  private static final String MOST = "spark.lancepart.inlineBytes";
  private static final long MOST_BYTES = 768L << 10;

  /** How large a scan's rows may be to come with its plan; none where this Spark reads rows of workers, not columns. */
  static long mostBytes() {
    String given = SparkSession.active().conf().get(MOST, Long.toString(MOST_BYTES));
    return SparkInternals.canReadColumns() ? JavaUtils.byteStringAsBytes(given) : 0;
  }

  @Override
  public String toString() {
    return arrow.length + " bytes";
  }

  private record Readers() implements PartitionReaderFactory {
    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      throw new UnsupportedOperationException("these rows are read in columns");
    }

    @Override
    public boolean supportColumnarReads(InputPartition partition) {
      return true;
    }

    @Override
    public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
      InputPartition rows = partition instanceof KeyedPartition keyed ? keyed.inner() : partition;
      return new Batches(((InlineRows) rows).arrow());
    }
  }

  private static final class Batches implements PartitionReader<ColumnarBatch> {
    private final BufferAllocator memory = ArrowUtils.rootAllocator().newChildAllocator("lancepart", 0, Long.MAX_VALUE);
    private final ArrowStreamReader reader;
    private long rows;

    Batches(byte[] arrow) {
      reader = new ArrowStreamReader(new ByteArrayInputStream(arrow), memory);
    }

    @Override
    public boolean next() throws IOException {
      return reader.loadNextBatch();
    }

    @Override
    public ColumnarBatch get() {
      try {
        var root = reader.getVectorSchemaRoot();
        ColumnVector[] columns =
            root.getFieldVectors().stream().map(ArrowColumnVector::new).map(ArrowValueColumn::of)
                .toArray(ColumnVector[]::new);
        rows += root.getRowCount();
        return new Columns.Lent(columns, root.getRowCount());
      } catch (IOException e) {
        throw new java.io.UncheckedIOException(e);
      }
    }

    @Override
    public CustomTaskMetric[] currentMetricsValues() {
      return new CustomTaskMetric[] {RowsFound.value(rows)};
    }

    @Override
    public void initMetricsValues(CustomTaskMetric[] counted) {
      for (CustomTaskMetric each : counted) {
        rows += each.name().equals(RowsFound.NAME) ? each.value() : 0;
      }
    }

    @Override
    public void close() throws IOException {
      reader.close();
      memory.close();
    }
  }
}
