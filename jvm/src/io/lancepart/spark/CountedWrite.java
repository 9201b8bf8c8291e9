package io.lancepart.spark;

import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.Write;

/** A write that shows in Spark's UI what it wrote. */
interface CountedWrite extends Write {
  WriteMetrics metrics();

  @Override
  default CustomMetric[] supportedCustomMetrics() {
    return WriteMetrics.supported();
  }

  @Override
  default CustomTaskMetric[] reportDriverMetrics() {
    return metrics().values();
  }
}
