package io.lancepart.spark;

import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.write.RequiresDistributionAndOrdering;

/** A write whose rows Spark brings together and sorts first, as options or the table's properties say. */
interface LaidOutWrite extends RequiresDistributionAndOrdering {
  WriteLayout layout();

  @Override
  default Distribution requiredDistribution() {
    return layout().distribution();
  }

  /** Adaptive execution may split what is large and join what is small: rows of a partition can be in several files. */
  @Override
  default boolean distributionStrictlyRequired() {
    return false;
  }

  @Override
  default long advisoryPartitionSizeInBytes() {
    return layout().advisedBytes();
  }

  @Override
  default SortOrder[] requiredOrdering() {
    return layout().ordering();
  }
}
