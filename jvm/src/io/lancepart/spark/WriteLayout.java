package io.lancepart.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.distributions.Distributions;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NullOrdering;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * How the rows of a write come to its tasks, and how large files become: what options of the write say, or else properties
 * of the table.
 */
record WriteLayout(Distribution distribution, SortOrder[] ordering, long fileBytes) {
  private static final String FILE_SIZE = "target_file_size";
  private static final Pattern ORDER = Pattern.compile(
      "\\s*(?:`((?:[^`]|``)+)`|([^\\s`,]+))(?:\\s+(ASC|DESC))?(?:\\s+NULLS\\s+(FIRST|LAST))?\\s*",
      Pattern.CASE_INSENSITIVE);

  /** Rows are written where they are. */
  static WriteLayout none() {
    return new WriteLayout(Distributions.unspecified(), new SortOrder[0], 0);
  }

  static WriteLayout of(
      CaseInsensitiveStringMap options, Map<String, String> properties, Transform[] clustering, StructType schema) {
    String mode = said(options, "distribution", properties, "write.distribution-mode", "auto").toLowerCase(Locale.ROOT);
    String order = said(options, "order_by", properties, "write.order-by", "");
    String size = said(options, FILE_SIZE, properties, "write.target-file-size", "0");
    SortOrder[] chosen = parsed(order, schema);
    boolean grouped = mode.equals("hash") || mode.equals("range");
    List<SortOrder> all = new ArrayList<>();
    if (chosen.length > 0 || mode.equals("range")) {
      Arrays.stream(clustering).forEach(each -> all.add(Expressions.sort(each, SortDirection.ASCENDING)));
    }
    all.addAll(List.of(chosen));
    SortOrder[] ordering = all.toArray(SortOrder[]::new);
    Distribution distribution = !grouped || (clustering.length == 0 && ordering.length == 0)
        ? Distributions.unspecified()
        : mode.equals("range") ? Distributions.ordered(ordering)
        : clustering.length == 0 ? Distributions.unspecified() : Distributions.clustered(clustering);
    return new WriteLayout(distribution, ordering, bytes(size));
  }

  /** Whether options may bring rows together, or sort them, by what they are partitioned by. */
  static boolean isGrouped(CaseInsensitiveStringMap options) {
    String mode = options.getOrDefault("distribution", "").toLowerCase(Locale.ROOT);
    return mode.equals("hash") || mode.equals("range") || options.containsKey("order_by");
  }

  private static String said(
      CaseInsensitiveStringMap options, String option, Map<String, String> properties, String property, String other) {
    return options.getOrDefault(option, properties.getOrDefault(property, other));
  }

  private static long bytes(String text) {
    try {
      return JavaUtils.byteStringAsBytes(text);
    } catch (NumberFormatException e) {
      throw new IllegalArgumentException("'" + text + "' is no size of a file: write bytes, or a text such as 256m", e);
    }
  }

  /** Columns as ORDER BY has them: {@code ts DESC, `a b` NULLS LAST}. */
  private static SortOrder[] parsed(String text, StructType schema) {
    List<SortOrder> found = new ArrayList<>();
    Matcher each = ORDER.matcher(text);
    int at = 0;
    while (at < text.length()) {
      each.region(at, text.length());
      String name = !each.lookingAt() ? null : each.group(1) != null ? each.group(1).replace("``", "`") : each.group(2);
      boolean ends = name != null && (each.end() == text.length() || text.charAt(each.end()) == ',');
      if (!ends || !Arrays.asList(schema.fieldNames()).contains(name)) {
        throw new IllegalArgumentException(
            "'" + text + "' is no order of rows: write columns that they have, as in ts DESC, `a b` NULLS LAST");
      }
      found.add(sort(name, each.group(3), each.group(4)));
      at = each.end() + 1;
    }
    return found.toArray(SortOrder[]::new);
  }

  private static SortOrder sort(String name, String direction, String nulls) {
    SortDirection way = "DESC".equalsIgnoreCase(direction) ? SortDirection.DESCENDING : SortDirection.ASCENDING;
    NullOrdering place = nulls == null ? way.defaultNullOrdering()
        : "FIRST".equalsIgnoreCase(nulls) ? NullOrdering.NULLS_FIRST : NullOrdering.NULLS_LAST;
    return Expressions.sort(Keys.column(name), way, place);
  }

  /** The size that adaptive execution aims at where rows are shuffled anyway; 0 leaves it to Spark's settings. */
  long advisedBytes() {
    return distribution instanceof org.apache.spark.sql.connector.distributions.UnspecifiedDistribution ? 0 : fileBytes;
  }

  /** Options of a write, with the size of files as Python reads it. */
  Map<String, String> with(Map<String, String> options) {
    if (fileBytes > 0) {
      options.put(FILE_SIZE, Long.toString(fileBytes));
    }
    return options;
  }
}
