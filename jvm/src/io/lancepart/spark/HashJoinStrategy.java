package io.lancepart.spark;

import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.FullOuter$;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.LeftOuter$;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.RightOuter$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.HintInfo;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.LogicalQueryStage;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SHUFFLE_HASH$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.Option;
import scala.Some;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.math.BigInt;

/**
 * A join of two partitioned tables holds the smaller side in memory where it is small, rather than sorting both: what
 * Spark prefers after a shuffle, because it does not know how large the parts are, costs most of a join without one.
 */
final class HashJoinStrategy extends SparkStrategy {
  private static final String MOST = "spark.lancepart.hashJoinBytes";
  private static final long MOST_BYTES = 256L << 20;
  private static final int MUCH_SMALLER = 3;
  /** How much larger than its shuffled rows a hash table of them may be, while it grows. */
  private static final int HELD_OF_SHUFFLED = 8;

  private final SparkSession session;

  HashJoinStrategy(SparkSession session) {
    this.session = session;
  }

  @Override
  @SuppressWarnings("unchecked")
  public Seq<SparkPlan> apply(LogicalPlan plan) {
    if (plan instanceof Join join && join.condition().isDefined()) {
      Join hinted = join.hint().equals(JoinHint.NONE()) ? hinted(join) : merging(join);
      if (hinted != join) {
        return session.sessionState().planner().JoinSelection().apply(hinted);
      }
    }
    return (Seq<SparkPlan>) (Seq<?>) Nil$.MODULE$;
  }

  private Join hinted(Join join) {
    LanceScan left = scanned(join.left());
    LanceScan right = scanned(join.right());
    boolean joinsKeys = left != null && right != null && left.hasKeys() && right.hasKeys();
    if (!joinsKeys || !isEquality(join.condition().get())) {
      return join;
    }
    boolean leftIsSmall = isSmall(join.left(), left, right) && mayHoldLeft(join.joinType());
    boolean rightIsSmall = isSmall(join.right(), right, left) && mayHoldRight(join.joinType());
    if (!leftIsSmall && !rightIsSmall) {
      return join;
    }
    return with(join, rightIsSmall ? new JoinHint(Option.empty(), held()) : new JoinHint(held(), Option.empty()));
  }

  /**
   * The join of a MERGE that inserts too, which Spark hints not to send the target around, and whose source it can't send around
   * then: it would sort all rows of the target. The source is held where it is small, as its shuffle has shown.
   */
  private Join merging(Join join) {
    LanceScan target = join.left() instanceof LogicalQueryStage stage ? scanned(stage.logicalPlan()) : scanned(join.left());
    boolean isMerge = target != null && target.identifiesRows() && join.hint().rightHint().isEmpty() && keepsSource(join.joinType());
    if (!isMerge || !(join.right() instanceof LogicalQueryStage source) || !source.isMaterialized()) {
      return join;
    }
    boolean isSmall = source.stats().sizeInBytes().$times(BigInt.apply(HELD_OF_SHUFFLED)).$less$eq(BigInt.apply(most()));
    return isSmall ? with(join, new JoinHint(join.hint().leftHint(), held())) : join;
  }

  /**
   * Whether a condition only compares keys. One that says more is likely to have many rows of each key to test, which lie side by
   * side once they are sorted, but anywhere in a hash table.
   */
  private static boolean isEquality(Expression condition) {
    return condition instanceof And both
        ? isEquality(both.left()) && isEquality(both.right())
        : condition instanceof EqualTo || condition instanceof EqualNullSafe;
  }

  private static Option<HintInfo> held() {
    return new Some<>(new HintInfo(new Some<>(SHUFFLE_HASH$.MODULE$)));
  }

  private static Join with(Join join, JoinHint hints) {
    return new Join(join.left(), join.right(), join.joinType(), join.condition(), hints);
  }

  /** A side that Spark would broadcast is left to it. */
  private boolean isSmall(LogicalPlan side, LanceScan scan, LanceScan other) {
    BigInt broadcast = BigInt.apply(session.sessionState().conf().autoBroadcastJoinThreshold());
    return !side.stats().sizeInBytes().$less$eq(broadcast)
        && scan.estimatedBytes() <= most() && scan.estimatedBytes() <= other.estimatedBytes() / MUCH_SMALLER;
  }

  private long most() {
    return Long.parseLong(session.sessionState().conf().getConfString(MOST, Long.toString(MOST_BYTES)));
  }

  private static boolean mayHoldLeft(JoinType type) {
    return type == Inner$.MODULE$ || type == RightOuter$.MODULE$;
  }

  private static boolean mayHoldRight(JoinType type) {
    return type == Inner$.MODULE$ || type == LeftOuter$.MODULE$ || type == LeftSemi$.MODULE$ || type == LeftAnti$.MODULE$;
  }

  private static boolean keepsSource(JoinType type) {
    return type == RightOuter$.MODULE$ || type == FullOuter$.MODULE$;
  }

  private static LanceScan scanned(LogicalPlan side) {
    if (side instanceof Project project) {
      return scanned(project.child());
    }
    if (side instanceof Filter filter) {
      return scanned(filter.child());
    }
    return side instanceof DataSourceV2ScanRelation relation && relation.scan() instanceof LanceScan scan ? scan : null;
  }
}
