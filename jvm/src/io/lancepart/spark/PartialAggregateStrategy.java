package io.lancepart.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateMode;
import org.apache.spark.sql.catalyst.expressions.aggregate.Final$;
import org.apache.spark.sql.catalyst.expressions.aggregate.Partial$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.execution.PlanLater;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.aggregate.HashAggregateExec;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.types.Metadata;
import scala.Option;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Has the tasks of a scan aggregate their rows where the query does so right above it: Spark plans the aggregation in two
 * steps, and the first one is replaced by a scan that gives its result. The second one, which merges and finishes, is
 * Spark's own.
 */
final class PartialAggregateStrategy extends SparkStrategy {
  private static final String ENABLED = "spark.lancepart.partialAggregates";

  private final SparkSession session;

  PartialAggregateStrategy(SparkSession session) {
    this.session = session;
  }

  @Override
  @SuppressWarnings("unchecked")
  public Seq<SparkPlan> apply(LogicalPlan plan) {
    SparkPlan found = plan instanceof Aggregate aggregate && isEnabled() ? plannedIfKnown(aggregate) : null;
    return found == null
        ? (Seq<SparkPlan>) (Seq<?>) Nil$.MODULE$
        : CollectionConverters.asScala(List.of(found)).toSeq();
  }

  private boolean isEnabled() {
    return Boolean.parseBoolean(session.sessionState().conf().getConfString(ENABLED, "true"));
  }

  /** A plan of Spark's aggregation that has other parts in this version is left as it is. */
  private SparkPlan plannedIfKnown(Aggregate aggregate) {
    try {
      return planned(aggregate);
    } catch (LinkageError e) {
      return null;
    }
  }

  private SparkPlan planned(Aggregate aggregate) {
    DataSourceV2ScanRelation relation = scanned(aggregate.child());
    if (relation == null || !(relation.scan() instanceof LanceScan scan) || !scan.isWorthNarrowing() || !scan.needsNoKeys()) {
      return null;
    }
    Set<Predicate> applied = new HashSet<>();
    if (!isApplied(aggregate.child(), scan, applied)) {
      return null;
    }
    List<SparkPlan> usual = CollectionConverters.asJava(session.sessionState().planner().Aggregation().apply(aggregate));
    if (usual.size() != 1 || !(usual.get(0) instanceof HashAggregateExec last) || !isIn(Final$.MODULE$, last)
        || !(last.child() instanceof HashAggregateExec first) || !isIn(Partial$.MODULE$, first)
        || !(first.child() instanceof PlanLater)) {
      return null;
    }
    JsonNode partial = new PartialAggregates(CollectionConverters.asJava(relation.output())).json(first);
    return partial == null ? null : replaced(last, first, relation, scan.aggregated(columns(partial), applied, partial));
  }

  /** The scan below projections that only choose columns, and a filter; null if there is anything else. */
  private static DataSourceV2ScanRelation scanned(LogicalPlan plan) {
    if (plan instanceof Project project) {
      boolean chooses =
          CollectionConverters.asJava(project.projectList()).stream().allMatch(AttributeReference.class::isInstance);
      return chooses ? scanned(project.child()) : null;
    } else if (plan instanceof Filter filter) {
      return scanned(filter.child());
    }
    return plan instanceof DataSourceV2ScanRelation relation ? relation : null;
  }

  /** Whether Python applies all filters below an aggregate just as Spark would. */
  private static boolean isApplied(LogicalPlan plan, LanceScan scan, Set<Predicate> applied) {
    if (plan instanceof Project project) {
      return isApplied(project.child(), scan, applied);
    } else if (plan instanceof Filter filter) {
      return AppliedFilterStrategy.without(filter.condition(), scan, applied) == null
          && isApplied(filter.child(), scan, applied);
    }
    return true;
  }

  private static boolean isIn(AggregateMode mode, HashAggregateExec plan) {
    return CollectionConverters.asJava(plan.aggregateExpressions()).stream()
        .map(AggregateExpression.class::cast).allMatch(each -> each.mode().equals(mode));
  }

  /** The columns that are read, each once, as the JSON of partial aggregates names them. */
  private static List<String> columns(JsonNode partial) {
    Set<String> found = new LinkedHashSet<>();
    partial.get("keys").forEach(each -> found.add(each.asText()));
    partial.get("buffers").findValuesAsText("column").forEach(found::add);
    return new ArrayList<>(found);
  }

  /** The second step over a scan that gives what the first one would: the same columns, by the same ids. */
  private SparkPlan replaced(
      HashAggregateExec last, HashAggregateExec first, DataSourceV2ScanRelation relation, LanceScan scan) {
    List<AttributeReference> read = new ArrayList<>();
    List<NamedExpression> given = new ArrayList<>();
    for (Attribute each : CollectionConverters.asJava(first.output())) {
      var column = attribute(each, NamedExpression$.MODULE$.newExprId());
      read.add(column);
      given.add(new Alias(column, each.name(), each.exprId(), each.qualifier(), Option.empty(), noTexts()));
    }
    SparkPlan below = planLater(SparkInternals.unordered(relation, scan, read));
    SparkPlan renamed = new ProjectExec(CollectionConverters.asScala(given).toSeq(), below);
    return (SparkPlan) last.withNewChildren(CollectionConverters.asScala(List.of(renamed)).toSeq());
  }

  private static AttributeReference attribute(Attribute like, ExprId id) {
    return new AttributeReference(like.name(), like.dataType(), like.nullable(), Metadata.empty(), id, noTexts());
  }

  @SuppressWarnings("unchecked")
  private static Seq<String> noTexts() {
    return (Seq<String>) (Seq<?>) Nil$.MODULE$;
  }
}
