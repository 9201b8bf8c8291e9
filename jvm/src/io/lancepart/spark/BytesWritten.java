package io.lancepart.spark;

import org.apache.spark.sql.connector.metric.CustomSumMetric;

/** How many bytes a write wrote. Spark's UI makes one by the name of the class. */
public final class BytesWritten extends CustomSumMetric {
  static final String NAME = "bytes_written";

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public String description() {
    return "bytes written";
  }
}
