package io.lancepart.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
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
  private static final String OVERWRITE_MODE = "partitionOverwriteMode";

  private final Map<String, String> options;
  private final LogicalWriteInfo info;
  private final Transform[] clustering;
  private final ObjectNode question = Python.JSON.createObjectNode().put("ask", "write").put("mode", "append");

  LanceWriteBuilder(Map<String, String> options, LogicalWriteInfo info, Transform[] clustering) {
    this.options = options;
    this.info = info;
    this.clustering = clustering;
  }

  /** The table is to be made, partitioned by these. */
  LanceWriteBuilder creating(ArrayNode by) {
    question.set("by", by);
    return this;
  }

  @Override
  public WriteBuilder truncate() {
    String told = SparkSession.active().conf().get("spark.sql.sources." + OVERWRITE_MODE, "static");
    boolean dynamic = "dynamic".equalsIgnoreCase(info.options().getOrDefault(OVERWRITE_MODE, told));
    question.put("mode", dynamic && !info.options().containsKey("replaceWhere") ? "dynamic" : "truncate");
    return this;
  }

  @Override
  public WriteBuilder overwrite(Predicate[] predicates) {
    if (predicates.length == 0 || (predicates.length == 1 && predicates[0] instanceof AlwaysTrue)) {
      return truncate();
    }
    question.put("mode", "filter");
    ArrayNode pushed = question.putArray("pushed");
    for (Predicate predicate : predicates) {
      pushed.add(Expressed.json(predicate));
    }
    return this;
  }

  @Override
  public WriteBuilder overwriteDynamicPartitions() {
    question.put("mode", "dynamic");
    return this;
  }

  @Override
  public Write build() {
    boolean hash = "hash".equalsIgnoreCase(info.options().getOrDefault("distribution", "auto"));
    return new LanceWrite(options, info, question, hash ? clustering : new Transform[0]);
  }
}
