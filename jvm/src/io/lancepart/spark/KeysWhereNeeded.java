package io.lancepart.spark;

import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.AttributeSet$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.LeftOuter$;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.RightOuter$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.math.BigInt;

/**
 * Plans nothing: Spark passes the whole query first and then its parts, and each scan is informed whether the query has a use
 * for its keys, each of which costs a task. A join by what the table is partitioned by has, unless Spark broadcasts one side
 * of it, and so has a grouping by it. The first call for a scan decides.
 */
final class KeysWhereNeeded extends SparkStrategy {
  private final SparkSession session;

  KeysWhereNeeded(SparkSession session) {
    this.session = session;
  }

  @Override
  @SuppressWarnings("unchecked")
  public Seq<SparkPlan> apply(LogicalPlan plan) {
    mark(plan, new Uses(AttributeSet$.MODULE$.empty(), AttributeSet$.MODULE$.empty(), AttributeSet$.MODULE$.empty(), false));
    return (Seq<SparkPlan>) (Seq<?>) Nil$.MODULE$;
  }

  /**
   * What is above a scan: the columns that joins without a broadcast, windows and groupings go by. Below a node that may give
   * columns new names in a way that is not known here, each column counts as one that joins go by.
   */
  private record Uses(AttributeSet joins, AttributeSet windows, AttributeSet groups, boolean joinsByAny) {
    Uses below(LogicalPlan plan, boolean isShuffled) {
      AttributeSet joins = plan instanceof Join join && isShuffled && join.condition().isDefined()
          ? this.joins.$plus$plus(join.condition().get().references()) : this.joins;
      AttributeSet windows = plan instanceof Window window ? with(this.windows, window.partitionSpec()) : this.windows;
      AttributeSet groups =
          plan instanceof Aggregate aggregate ? with(this.groups, aggregate.groupingExpressions()) : this.groups;
      if (plan instanceof Project project) {
        return new Uses(named(joins, project.projectList()), named(windows, project.projectList()),
            named(groups, project.projectList()), joinsByAny);
      } else if (plan instanceof Aggregate aggregate) {
        return new Uses(named(joins, aggregate.aggregateExpressions()), windows, groups, joinsByAny);
      }
      boolean keepsNames = plan instanceof Join || plan instanceof Filter || plan instanceof Window || plan instanceof Sort;
      return new Uses(joins, windows, groups, joinsByAny || !keepsNames && !joins.isEmpty());
    }

    /** The same columns, and those that the ones with a new name are made of. */
    private static AttributeSet named(AttributeSet columns, Seq<NamedExpression> list) {
      AttributeSet all = columns;
      for (NamedExpression each : CollectionConverters.asJava(list)) {
        if (each instanceof Alias alias && columns.contains(alias.toAttribute())) {
          all = all.$plus$plus(alias.references());
        }
      }
      return all;
    }
  }

  private void mark(LogicalPlan plan, Uses uses) {
    if (plan instanceof DataSourceV2ScanRelation relation && relation.scan() instanceof LanceScan scan) {
      boolean joined = uses.joinsByAny() || hasKey(relation, scan, uses.joins());
      scan.useKeys(joined || hasKey(relation, scan, uses.windows()), hasKey(relation, scan, uses.groups()));
      return;
    }
    Uses below = uses.below(plan, plan instanceof Join join && !isBroadcast(join));
    for (LogicalPlan child : CollectionConverters.asJava(plan.children())) {
      mark(child, below);
    }
  }

  private static AttributeSet with(AttributeSet known, Seq<Expression> expressions) {
    AttributeSet all = known;
    for (Expression each : CollectionConverters.asJava(expressions)) {
      all = all.$plus$plus(each.references());
    }
    return all;
  }

  private static boolean hasKey(DataSourceV2ScanRelation relation, LanceScan scan, AttributeSet columns) {
    return CollectionConverters.asJava(relation.output()).stream()
        .anyMatch(each -> scan.isPartitionedBy(each.name()) && columns.contains(each));
  }

  /** Whether Spark broadcasts a side of a join, so that the other one needs no partitioning. */
  private boolean isBroadcast(Join join) {
    JoinType type = join.joinType();
    if (!join.hint().equals(JoinHint.NONE())) {
      return false;
    }
    boolean left = (type == Inner$.MODULE$ || type == RightOuter$.MODULE$) && isSmall(join.left());
    return left || isOneSided(type) && isSmall(join.right());
  }

  private static boolean isOneSided(JoinType type) {
    return type == Inner$.MODULE$ || type == LeftOuter$.MODULE$ || type == LeftSemi$.MODULE$ || type == LeftAnti$.MODULE$;
  }

  private boolean isSmall(LogicalPlan side) {
    return side.stats().sizeInBytes().$less$eq(BigInt.apply(session.sessionState().conf().autoBroadcastJoinThreshold()));
  }
}
