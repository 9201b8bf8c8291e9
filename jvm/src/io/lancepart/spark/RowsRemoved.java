package io.lancepart.spark;

import org.apache.spark.sql.connector.metric.CustomSumMetric;

/** How many rows a write removed where they are. Spark's UI makes one by the name of the class. */
public final class RowsRemoved extends CustomSumMetric {
  static final String NAME = "rows_removed";

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public String description() {
    return "rows removed";
  }
}
