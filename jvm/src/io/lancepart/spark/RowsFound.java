package io.lancepart.spark;

import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** How many rows the workers gave to Spark, after the filters that Lance applied. Spark's UI makes one by the name of the class. */
public final class RowsFound extends CustomSumMetric {
  static final String NAME = "rows_found";

  static CustomTaskMetric value(long rows) {
    return new WriteMetrics.Value(NAME, rows);
  }

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public String description() {
    return "rows after Lance's filter";
  }
}
