package io.lancepart.spark;

import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NamedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
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
    return isOurs(target) ? SparkInternals.withSchemaEvolution(plan) : plan;
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

  private boolean isOurs(NamedRelation target) {
    if (target instanceof DataSourceV2Relation found) {
      return found.table() instanceof PartitionedTable;
    }
    if (!(target instanceof UnresolvedRelation unresolved)) {
      return false;
    }
    List<String> parts = CollectionConverters.asJava(unresolved.multipartIdentifier());
    boolean hasCatalog = parts.size() > 1 && session.conf().contains("spark.sql.catalog." + parts.get(0));
    String name = hasCatalog ? parts.get(0) : session.catalog().currentCatalog();
    return SparkInternals.catalog(session, name) instanceof LanceCatalog;
  }
}
