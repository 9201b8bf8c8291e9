package io.lancepart.spark;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Has Spark not apply again the filters that Python applies to each row just as Spark would, and has Python not send the
 * columns that only these filters need. This is done last, when the query is planned: before that, dynamic pruning looks
 * for the filters in the plan.
 */
final class AppliedFilterStrategy extends SparkStrategy {
  @Override
  @SuppressWarnings("unchecked")
  public Seq<SparkPlan> apply(LogicalPlan plan) {
    LogicalPlan narrower = narrower(plan);
    return narrower == plan
        ? (Seq<SparkPlan>) (Seq<?>) Nil$.MODULE$
        : CollectionConverters.asScala(List.of(planLater(narrower))).toSeq();
  }

  private static LogicalPlan narrower(LogicalPlan plan) {
    LogicalPlan below = plan instanceof Project project ? project.child() : plan;
    if (!(below instanceof Filter filter) || !(filter.child() instanceof DataSourceV2ScanRelation relation)
        || !(relation.scan() instanceof LanceScan scan) || !scan.isWorthNarrowing()) {
      return plan;
    }
    Set<Predicate> applied = new HashSet<>();
    Expression left = without(filter.condition(), scan, applied);
    if (applied.isEmpty()) {
      return plan;
    }
    DataSourceV2ScanRelation rest = relation(relation, scan, applied, needed(plan, left));
    LogicalPlan child = left == null ? rest : new Filter(left, rest);
    return plan instanceof Project project ? new Project(project.projectList(), child) : child;
  }

  /** A condition without what Python applies, which is added to {@code applied}; null if nothing is left. */
  static Expression without(Expression condition, LanceScan scan, Set<Predicate> applied) {
    if (condition instanceof And both) {
      Expression left = without(both.left(), scan, applied);
      Expression right = without(both.right(), scan, applied);
      if (left == both.left() && right == both.right()) {
        return condition;
      }
      return left == null ? right : right == null ? left : new And(left, right);
    }
    Predicate found = SparkInternals.pushedForm(condition);
    if (found == null || !scan.appliesExactly(found)) {
      return condition;
    }
    applied.add(found);
    return null;
  }

  /** What the plan above a scan uses of it; null if that is all. */
  private static AttributeSet needed(LogicalPlan plan, Expression left) {
    if (!(plan instanceof Project project)) {
      return null;
    }
    AttributeSet found = project.references();
    return left == null ? found : found.$plus$plus(left.references());
  }

  /** The same rows in the columns that are needed, of which there is at least one, and those that keys are made of. */
  private static DataSourceV2ScanRelation relation(
      DataSourceV2ScanRelation relation, LanceScan scan, Set<Predicate> applied, AttributeSet needed) {
    List<AttributeReference> all = CollectionConverters.asJava(relation.output());
    boolean keyed = relation.keyGroupedPartitioning().isDefined();
    List<AttributeReference> output = new ArrayList<>();
    for (AttributeReference each : all) {
      if (needed == null || needed.contains(each) || keyed && scan.isPartitionedBy(each.name())) {
        output.add(each);
      }
    }
    if (output.isEmpty()) {
      output.add(all.stream().min(Comparator.comparingInt(each -> each.dataType().defaultSize())).orElseThrow());
    }
    List<String> columns = output.stream().map(AttributeReference::name).toList();
    return SparkInternals.copy(relation, scan.narrower(columns, applied), output);
  }
}
