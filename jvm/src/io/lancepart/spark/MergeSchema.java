package io.lancepart.spark;

import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NamedRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import scala.jdk.javaapi.CollectionConverters;

/**
 * {@code option("mergeSchema", "true")} of a frame's write: the same as WITH SCHEMA EVOLUTION in a statement. It runs before
 * Spark compares columns, which is when hints are resolved.
 */
final class MergeSchema extends Rule<LogicalPlan> {
  private static final String OPTION = "mergeSchema";
  private final SparkSession session;

  MergeSchema(SparkSession session) {
    this.session = session;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (!(plan instanceof V2WriteCommand write) || !isWanted(plan)) {
      return plan;
    }
    NamedRelation target = write.table();
    return Targets.isOurs(session, target) ? SparkInternals.withSchemaEvolution(plan) : plan;
  }

  private static boolean isWanted(LogicalPlan plan) {
    Object options = SparkInternals.field(plan, "writeOptions");
    if (!(options instanceof scala.collection.immutable.Map<?, ?> all)) {
      return false;
    }
    for (Map.Entry<?, ?> each : CollectionConverters.asJava(all).entrySet()) {
      if (OPTION.equalsIgnoreCase(each.getKey().toString())) {
        return "true".equalsIgnoreCase(each.getValue().toString());
      }
    }
    return false;
  }
}
