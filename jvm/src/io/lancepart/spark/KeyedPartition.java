package io.lancepart.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.HasPartitionKey;
import org.apache.spark.sql.connector.read.InputPartition;

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
}
