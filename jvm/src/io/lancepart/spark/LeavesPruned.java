package io.lancepart.spark;

import org.apache.spark.sql.connector.metric.CustomSumMetric;

/** How many leaves a scan leaves out because no row of theirs can match. Spark's UI makes one by the name of the class. */
public final class LeavesPruned extends CustomSumMetric {
  static final String NAME = "leaves_pruned";

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public String description() {
    return "leaves pruned";
  }
}
