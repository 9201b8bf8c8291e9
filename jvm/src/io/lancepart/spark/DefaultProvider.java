package io.lancepart.spark;

import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.UnresolvedIdentifier;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import scala.Option;
import scala.Some;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A frame that says no format has Spark's default one, and {@code saveAsTable} and {@code toTable} would make a table of it
 * USING parquet: in a catalog of ours that says nothing. A statement that says so itself is refused.
 */
final class DefaultProvider extends Rule<LogicalPlan> {
  private static final Set<String> MAKING = Set.of("CreateTable", "CreateTableAsSelect", "ReplaceTableAsSelect");
  private static final String DEFAULT = "spark.sql.sources.default";

  private final SparkSession session;

  DefaultProvider(SparkSession session) {
    this.session = session;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (!MAKING.contains(plan.nodeName()) || plan.origin().sqlText().isDefined()
        || !(SparkInternals.field(plan, "name") instanceof UnresolvedIdentifier name)
        || !(SparkInternals.field(plan, "tableSpec") instanceof TreeNode<?> spec)) {
      return plan;
    }
    List<String> parts = CollectionConverters.asJava(name.nameParts());
    boolean isDefault = new Some<>(session.conf().get(DEFAULT)).equals(SparkInternals.element((scala.Product) spec, "provider"));
    return isDefault && Targets.isOurs(session, parts)
        ? (LogicalPlan) SparkInternals.with(plan, "tableSpec", SparkInternals.with(spec, "provider", Option.empty())) : plan;
  }
}
