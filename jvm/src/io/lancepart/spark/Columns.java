package io.lancepart.spark;

import java.lang.reflect.Constructor;
import java.util.List;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.v2.python.PythonCustomMetric;
import org.apache.spark.sql.execution.datasources.v2.python.PythonInputPartition;
import org.apache.spark.sql.execution.datasources.v2.python.PythonPartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.python.ArrowPythonRunner;
import org.apache.spark.sql.execution.python.MapInBatchEvaluatorFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.immutable.Map;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Python's batches in the columns in which they come: Spark's own reader of a Python source makes a row of each first.
 *
 * <p>The runner that it uses has no name of its own, so it is looked for: a Spark that has none of that kind reads rows.
 */
final class Columns implements PartitionReader<ColumnarBatch> {
  private static final String RUNNER =
      "org.apache.spark.sql.execution.python.MapInBatchEvaluatorFactory$MapInBatchEvaluator$$anon$1";
  private static final Constructor<?> MAKER = maker();

  private final UserDefinedPythonDataSource source;
  private final Map<String, SQLMetric> metrics = PythonCustomMetric.pythonMetrics();
  private final Iterator<ColumnarBatch> batches;

  private Columns(PythonPartitionReaderFactory factory, PythonInputPartition partition) {
    source = factory.org$apache$spark$sql$execution$datasources$v2$python$PythonPartitionReaderFactory$$source;
    TaskContext context = TaskContext.get();
    batches = runner(evaluators(factory)).compute(single(single(row(row(partition.pickedPartition())))),
        context.partitionId(), context);
  }

  static boolean canRead() {
    return MAKER != null;
  }

  static Scan.ColumnarSupportMode supportMode() {
    return canRead() ? Scan.ColumnarSupportMode.SUPPORTED : Scan.ColumnarSupportMode.UNSUPPORTED;
  }

  static PartitionReader<ColumnarBatch> read(PartitionReaderFactory factory, InputPartition partition) {
    return new Columns((PythonPartitionReaderFactory) factory, (PythonInputPartition) partition);
  }

  private static Constructor<?> maker() {
    try {
      Constructor<?> found = Class.forName(RUNNER).getConstructors()[0];
      boolean known = ArrowPythonRunner.class.isAssignableFrom(found.getDeclaringClass())
          && found.getParameterCount() == 2 && found.getParameterTypes()[1] == int[][].class;
      PythonPartitionReaderFactory.class.getField(
          "org$apache$spark$sql$execution$datasources$v2$python$PythonPartitionReaderFactory$$source");
      return known ? found : null;
    } catch (ReflectiveOperationException | LinkageError | IndexOutOfBoundsException e) {
      return null;
    }
  }

  private MapInBatchEvaluatorFactory evaluators(PythonPartitionReaderFactory factory) {
    return source.createMapInBatchEvaluatorFactory(
        factory.org$apache$spark$sql$execution$datasources$v2$python$PythonPartitionReaderFactory$$pickledReadFunc,
        "read_from_data_source",
        UserDefinedPythonDataSource.readInputSchema(),
        factory.org$apache$spark$sql$execution$datasources$v2$python$PythonPartitionReaderFactory$$outputSchema,
        metrics,
        factory.org$apache$spark$sql$execution$datasources$v2$python$PythonPartitionReaderFactory$$jobArtifactUUID,
        factory.org$apache$spark$sql$execution$datasources$v2$python$PythonPartitionReaderFactory$$sessionUUID);
  }

  private static ArrowPythonRunner runner(MapInBatchEvaluatorFactory evaluators) {
    try {
      return (ArrowPythonRunner) MAKER.newInstance(evaluators.createEvaluator(), new int[][] {{0}});
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("Spark's runner of Python sources can't be made", e);
    }
  }

  private static InternalRow row(Object value) {
    return new GenericInternalRow(new Object[] {value});
  }

  private static <T> Iterator<T> single(T value) {
    return CollectionConverters.asScala(List.of(value).iterator());
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
      columns[i] = Flat.of(whole.getChild(i));
    }
    return new Lent(columns, batch.numRows());
  }

  /** A batch whose memory is the reader's, which uses it again for the next one: nobody else is to free it. */
  private static final class Lent extends ColumnarBatch {
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
    var values = CollectionConverters.asJava(metrics).entrySet().stream()
        .map(each -> new Tuple2<String, Object>(each.getKey(), each.getValue().value())).toList();
    return source.createPythonTaskMetrics(scala.collection.immutable.Map.from(CollectionConverters.asScala(values)));
  }

  @Override
  public void close() {}
}
