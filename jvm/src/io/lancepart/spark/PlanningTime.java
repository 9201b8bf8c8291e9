package io.lancepart.spark;

import org.apache.spark.sql.connector.metric.CustomSumMetric;

/** How long the planning service took for a scan, runtime filters included. Spark's UI makes one by the name of the class. */
public final class PlanningTime extends CustomSumMetric {
  static final String NAME = "planning_time";

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public String description() {
    return "planning time (ms)";
  }
}
