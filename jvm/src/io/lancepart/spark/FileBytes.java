package io.lancepart.spark;

import org.apache.spark.sql.connector.metric.CustomSumMetric;

/** How large the files of the leaves of a scan are. Spark's UI makes one by the name of the class. */
public final class FileBytes extends CustomSumMetric {
  static final String NAME = "file_bytes";

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public String description() {
    return "bytes of files read";
  }
}
