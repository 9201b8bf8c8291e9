package io.lancepart.spark;

import org.apache.spark.sql.connector.metric.CustomSumMetric;

/** How many fragments the leaves of a scan have. Spark's UI makes one by the name of the class. */
public final class FragmentsRead extends CustomSumMetric {
  static final String NAME = "fragments_read";

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public String description() {
    return "fragments read";
  }
}
