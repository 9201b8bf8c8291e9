package io.lancepart.spark;

import com.fasterxml.jackson.databind.JsonNode;
import io.lancepart.spark.Protocol.WriteRequest;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.expressions.filter.AlwaysTrue;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;

/** A write in the making: what Spark wants to happen to the rows that are there. */
final class LanceWriteBuilder implements SupportsOverwriteV2, SupportsDynamicOverwrite {
  static final String OVERWRITE_MODE = "partitionOverwriteMode";
  private static final String STATIC = "static";

  private final Map<String, String> options;
  private final LogicalWriteInfo info;
  private final Transform[] clustering;
  private final Map<String, String> properties;
  private String mode = "append";
  private List<String> by = List.of();
  private List<JsonNode> pushed = List.of();

  LanceWriteBuilder(
      Map<String, String> options, LogicalWriteInfo info, Transform[] clustering, Map<String, String> properties) {
    this.options = options;
    this.info = info;
    this.clustering = clustering;
    this.properties = properties;
  }

  /** The table is to be made, partitioned by these. */
  LanceWriteBuilder creating(List<String> by) {
    this.by = by;
    return this;
  }

  /**
   * All rows are to be replaced, unless an option says only those of the partitions that rows touch. The session's setting
   * speaks only for {@code df.write.save(path)}: of statements and of {@code writeTo} Spark has considered it already.
   */
  @Override
  public WriteBuilder truncate() {
    boolean saved = info.options().containsKey("path");
    String setting = saved ? SparkSession.active().conf().get("spark.sql.sources." + OVERWRITE_MODE, STATIC) : STATIC;
    boolean dynamic = "dynamic".equalsIgnoreCase(info.options().getOrDefault(OVERWRITE_MODE, setting));
    mode = dynamic && !info.options().containsKey("replaceWhere") ? "dynamic" : "truncate";
    return this;
  }

  @Override
  public WriteBuilder overwrite(Predicate[] predicates) {
    if (predicates.length == 0 || (predicates.length == 1 && predicates[0] instanceof AlwaysTrue)) {
      return truncate();
    }
    mode = "filter";
    pushed = FilterJson.json(Arrays.asList(predicates));
    return this;
  }

  @Override
  public WriteBuilder overwriteDynamicPartitions() {
    mode = "dynamic";
    return this;
  }

  @Override
  public Write build() {
    var request =
        new WriteRequest(mode, Python.json(info.schema()), by, List.of(), pushed, null, null);
    return new LanceWrite(options, info, request, WriteLayout.of(info.options(), properties, clustering, info.schema()));
  }
}
