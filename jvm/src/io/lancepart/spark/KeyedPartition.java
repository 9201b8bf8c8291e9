package io.lancepart.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.HasPartitionKey;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** One of Python's input partitions, all of whose rows have the same key. */
record KeyedPartition(InputPartition inner, Object[] key) implements HasPartitionKey {
  @Override
  public InternalRow partitionKey() {
    return new GenericInternalRow(key);
  }

  @Override
  public String[] preferredLocations() {
    return inner.preferredLocations();
  }

  /** Reads keyed partitions as Spark reads Python's partitions: in columns where it can. */
  record Readers(PartitionReaderFactory inner) implements PartitionReaderFactory {
    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      return inner.createReader(python(partition));
    }

    @Override
    public boolean supportColumnarReads(InputPartition partition) {
      return Columns.canRead();
    }

    @Override
    public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
      return Columns.read(inner, python(partition));
    }

    private static InputPartition python(InputPartition partition) {
      return partition instanceof KeyedPartition keyed ? keyed.inner : partition;
    }
  }
}
