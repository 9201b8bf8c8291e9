package io.lancepart.spark;

import org.apache.spark.sql.connector.metric.CustomSumMetric;

/** How many rows a write wrote. Spark's UI makes one by the name of the class. */
public final class RowsWritten extends CustomSumMetric {
  static final String NAME = "rows_written";

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public String description() {
    return "rows written";
  }
}
