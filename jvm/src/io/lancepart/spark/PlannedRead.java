package io.lancepart.spark;

import io.lancepart.spark.Protocol.ReadPlan;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Option;

/** What Python planned: a function for Spark's Python workers and its argument for each task, or the rows themselves. */
record PlannedRead(ReadPlan plan, StructType schema) {
  InputPartition[] partitions() {
    InputPartition[] found = new InputPartition[plan.tasks().size()];
    for (int i = 0; i < found.length; i++) {
      byte[] task = plan.tasks().get(i);
      found[i] = plan.inline() ? new InlineRows(task) : SparkInternals.partition(i, task);
    }
    return found;
  }

  PartitionReaderFactory readers() {
    if (plan.inline()) {
      return InlineRows.READERS;
    }
    return new Readers(
        Planner.source(), plan.function(), schema, SparkInternals.artifacts(), SparkInternals.session());
  }

  CustomMetric[] metrics() {
    return SparkInternals.metrics(Planner.source());
  }

  /** Reads partitions of Python's, with keys or without: in columns where this Spark can, else in rows. */
  record Readers(
      UserDefinedPythonDataSource source, byte[] function, StructType schema, Option<String> artifacts,
      Option<String> session)
      implements PartitionReaderFactory {
    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      return SparkInternals.readers(this).createReader(python(partition));
    }

    @Override
    public boolean supportColumnarReads(InputPartition partition) {
      return SparkInternals.canReadColumns();
    }

    @Override
    public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
      return new Columns(this, SparkInternals.task(python(partition)));
    }

    private static InputPartition python(InputPartition partition) {
      return partition instanceof KeyedPartition keyed ? keyed.inner() : partition;
    }
  }
}
