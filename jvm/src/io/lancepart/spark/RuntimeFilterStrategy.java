package io.lancepart.spark;

import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.math.BigInt;

/**
 * Drops runtime filters that would never run. Spark runs such a filter only where the other side of the join is broadcast
 * anyway; but before it knows, it plans the other side once more for each filter, with all the joins and filters in it. A
 * side that is too large to be broadcast is not worth that.
 */
final class RuntimeFilterStrategy extends SparkStrategy {
  private final SparkSession session;

  RuntimeFilterStrategy(SparkSession session) {
    this.session = session;
  }

  @Override
  @SuppressWarnings("unchecked")
  public Seq<SparkPlan> apply(LogicalPlan plan) {
    LogicalPlan kept = without(plan);
    return kept == plan
        ? (Seq<SparkPlan>) (Seq<?>) Nil$.MODULE$
        : CollectionConverters.asScala(java.util.List.of(planLater(kept))).toSeq();
  }

  /** The same scan, with the filters and projections over it that are worth their cost; all else is left as it is. */
  private LogicalPlan without(LogicalPlan plan) {
    if (!(isScan(plan))) {
      return plan;
    } else if (plan instanceof Project project) {
      LogicalPlan child = without(project.child());
      return child == project.child() ? plan : new Project(project.projectList(), child);
    } else if (plan instanceof Filter filter) {
      LogicalPlan child = without(filter.child());
      Expression condition = without(filter.condition());
      if (condition == null) {
        return child;
      }
      return child == filter.child() && condition == filter.condition() ? plan : new Filter(condition, child);
    }
    return plan;
  }

  private static boolean isScan(LogicalPlan plan) {
    LogicalPlan below = plan;
    while (below instanceof Project || below instanceof Filter) {
      below = below instanceof Project project ? project.child() : ((Filter) below).child();
    }
    return below instanceof DataSourceV2ScanRelation relation && relation.scan() instanceof LanceScan;
  }

  /** A condition without what is not worth its cost; null if nothing is left. */
  private Expression without(Expression condition) {
    if (condition instanceof And both) {
      Expression left = without(both.left());
      Expression right = without(both.right());
      if (left == both.left() && right == both.right()) {
        return condition;
      }
      return left == null ? right : right == null ? left : new And(left, right);
    }
    return condition instanceof DynamicPruningSubquery filter && !isWorthwhile(filter) ? null : condition;
  }

  private boolean isWorthwhile(DynamicPruningSubquery filter) {
    BigInt most = BigInt.apply(session.sessionState().conf().autoBroadcastJoinThreshold());
    return !filter.onlyInBroadcast() || filter.hint().isDefined()
        || filter.buildQuery().stats().sizeInBytes().$less$eq(most);
  }
}
