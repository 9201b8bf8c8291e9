package io.lancepart.spark;

import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;

/** The partition functions by name; a truncation's width is part of its name, as Spark allows a key one argument only. */
final class Functions {
  private static final Map<String, UnboundFunction> NAMED = Map.ofEntries(
      Map.entry("bucket", new Bucket(false)),
      Map.entry("multi_bucket", new Bucket(true)),
      Map.entry("year", TimeFunction.YEAR),
      Map.entry("month", TimeFunction.MONTH),
      Map.entry("day", TimeFunction.DAY),
      Map.entry("hour", TimeFunction.HOUR),
      Map.entry("year_month", TimeFunction.YEAR_MONTH),
      Map.entry("year_month_day", TimeFunction.YEAR_MONTH_DAY),
      Map.entry("year_month_day_hour", TimeFunction.YEAR_MONTH_DAY_HOUR),
      Map.entry("years", TimeFunction.YEAR),
      Map.entry("months", TimeFunction.YEAR_MONTH),
      Map.entry("days", TimeFunction.YEAR_MONTH_DAY),
      Map.entry("hours", TimeFunction.YEAR_MONTH_DAY_HOUR),
      Map.entry("truncate", new Truncate(0)));

  private Functions() {}

  static Stream<String> names() {
    return NAMED.keySet().stream().sorted();
  }

  static UnboundFunction find(String name) {
    String lower = name.toLowerCase(java.util.Locale.ROOT);
    if (lower.matches("truncate_[1-9][0-9]{0,9}")) {
      long width = Long.parseLong(lower.substring("truncate_".length()));
      return width <= Integer.MAX_VALUE ? new Truncate((int) width) : null;
    }
    return NAMED.get(lower);
  }
}
