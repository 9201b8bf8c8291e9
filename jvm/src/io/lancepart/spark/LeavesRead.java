package io.lancepart.spark;

import org.apache.spark.sql.connector.metric.CustomSumMetric;

/** How many leaves a scan reads. Spark's UI makes one by the name of the class. */
public final class LeavesRead extends CustomSumMetric {
  static final String NAME = "leaves_read";

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public String description() {
    return "leaves read";
  }
}
