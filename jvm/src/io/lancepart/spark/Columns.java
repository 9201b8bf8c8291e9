package io.lancepart.spark;

import java.util.Arrays;
import java.util.HashMap;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.Iterator;
import scala.collection.immutable.Map;

/** Python's batches in the columns in which they come: Spark's own reader of a Python source makes a row of each first. */
final class Columns implements PartitionReader<ColumnarBatch> {
  private final PlannedRead.Readers read;
  private final Map<String, SQLMetric> metrics = SparkInternals.metrics();
  private final java.util.Map<String, Long> before = new HashMap<>();
  private final Iterator<ColumnarBatch> batches;
  private long rows;

  Columns(PlannedRead.Readers read, byte[] task) {
    this.read = read;
    this.batches = SparkInternals.columns(read, task, metrics);
  }

  static Scan.ColumnarSupportMode supportMode() {
    return SparkInternals.canReadColumns()
        ? Scan.ColumnarSupportMode.SUPPORTED
        : Scan.ColumnarSupportMode.UNSUPPORTED;
  }

  @Override
  public boolean next() {
    return batches.hasNext();
  }

  /** All columns of a batch are the fields of one column. */
  @Override
  public ColumnarBatch get() {
    ColumnarBatch batch = batches.next();
    var whole = (ArrowColumnVector) batch.column(0);
    int count = ((StructType) whole.dataType()).size();
    ColumnVector[] columns = new ColumnVector[count];
    for (int i = 0; i < count; i++) {
      columns[i] = ArrowValueColumn.of(whole.getChild(i));
    }
    rows += batch.numRows();
    return new Lent(columns, batch.numRows());
  }

  /** A batch whose memory is the reader's, which uses it again for the next one: nobody else is to free it. */
  static final class Lent extends ColumnarBatch {
    Lent(ColumnVector[] columns, int rows) {
      super(columns, rows);
    }

    @Override
    public void close() {}

    @Override
    public void closeIfFreeable() {}
  }

  @Override
  public CustomTaskMetric[] currentMetricsValues() {
    CustomTaskMetric[] python = SparkInternals.values(read, metrics, before);
    CustomTaskMetric[] all = Arrays.copyOf(python, python.length + 1);
    all[python.length] = RowsFound.value(rows + before.getOrDefault(RowsFound.NAME, 0L));
    return all;
  }

  /** A task that reads several partitions goes on with what the readers before this one counted. */
  @Override
  public void initMetricsValues(CustomTaskMetric[] counted) {
    for (CustomTaskMetric each : counted) {
      before.put(each.name(), each.value());
    }
  }

  @Override
  public void close() {}
}
