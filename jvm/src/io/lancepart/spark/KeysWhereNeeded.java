package io.lancepart.spark;

import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.AttributeSet$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.LeftOuter$;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.RightOuter$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
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
 * for its keys, each of which costs a task. A join has unless Spark broadcasts one side of it, and a grouping has if it
 * groups by what the table is partitioned by. The first call for a scan decides.
 */
final class KeysWhereNeeded extends SparkStrategy {
  private final SparkSession session;

  KeysWhereNeeded(SparkSession session) {
    this.session = session;
  }

  @Override
  @SuppressWarnings("unchecked")
  public Seq<SparkPlan> apply(LogicalPlan plan) {
    mark(plan, false, AttributeSet$.MODULE$.empty(), AttributeSet$.MODULE$.empty());
    return (Seq<SparkPlan>) (Seq<?>) Nil$.MODULE$;
  }

  /** What is above a scan: joins that would shuffle it, and the columns that windows and groupings go by. */
  private void mark(LogicalPlan plan, boolean joined, AttributeSet windows, AttributeSet groups) {
    if (plan instanceof DataSourceV2ScanRelation relation && relation.scan() instanceof LanceScan scan) {
      scan.useKeys(joined || hasKey(relation, scan, windows), hasKey(relation, scan, groups));
      return;
    }
    boolean joins = joined || plan instanceof Join join && !isBroadcast(join);
    AttributeSet inWindows =
        plan instanceof Window window ? with(windows, window.partitionSpec()) : windows;
    AttributeSet inGroups =
        plan instanceof Aggregate aggregate ? with(groups, aggregate.groupingExpressions()) : groups;
    for (LogicalPlan child : CollectionConverters.asJava(plan.children())) {
      mark(child, joins, inWindows, inGroups);
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
