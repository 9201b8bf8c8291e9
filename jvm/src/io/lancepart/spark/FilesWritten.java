package io.lancepart.spark;

import org.apache.spark.sql.connector.metric.CustomSumMetric;

/** How many files a write wrote. Spark's UI makes one by the name of the class. */
public final class FilesWritten extends CustomSumMetric {
  static final String NAME = "files_written";

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public String description() {
    return "files written";
  }
}
