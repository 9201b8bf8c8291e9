package io.lancepart.spark;

import java.util.function.Predicate;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * {@code spark.sql.extensions}: tells scans whether their query has a use for keys, each of which costs a task, and Spark
 * which side of a join is small.
 */
public final class Extensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectPlannerStrategy(session -> new KeysWhereNeeded());
    extensions.injectPlannerStrategy(session -> new HashedWhereSmall((SparkSession) session));
    return BoxedUnit.UNIT;
  }

  /** Plans nothing: it is shown the whole query first and then its parts, and scans listen to the first word. */
  private static final class KeysWhereNeeded extends SparkStrategy {
    @Override
    @SuppressWarnings("unchecked")
    public Seq<SparkPlan> apply(LogicalPlan plan) {
      boolean joins = has(plan, each -> each instanceof Join || each instanceof Window);
      boolean groups = has(plan, each -> each instanceof Aggregate by && by.groupingExpressions().nonEmpty());
      plan.foreach(each -> {
        if (each instanceof DataSourceV2ScanRelation relation && relation.scan() instanceof LanceScan scan) {
          scan.useKeys(joins, groups);
        }
        return BoxedUnit.UNIT;
      });
      return (Seq<SparkPlan>) (Seq<?>) Nil$.MODULE$;
    }

    private static boolean has(LogicalPlan plan, Predicate<LogicalPlan> test) {
      return plan.exists(each -> test.test((LogicalPlan) each));
    }
  }
}
