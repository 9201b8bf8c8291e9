package io.lancepart.spark;

import java.util.function.Predicate;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** {@code spark.sql.extensions}: tells scans whether their query has a use for keys, each of which costs a task. */
public final class Extensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectPreCBORule(session -> new KeysWhereNeeded());
    return BoxedUnit.UNIT;
  }

  /** Looks at the whole query once its scans stand; a subquery may yet become one side of a join. */
  private static final class KeysWhereNeeded extends Rule<LogicalPlan> {
    @Override
    public LogicalPlan apply(LogicalPlan plan) {
      boolean joins = has(plan, each -> each instanceof Join || each instanceof Window || each instanceof Subquery);
      boolean groups = has(plan, each -> each instanceof Aggregate by && by.groupingExpressions().nonEmpty());
      plan.foreach(each -> {
        if (each instanceof DataSourceV2ScanRelation relation && relation.scan() instanceof LanceScan scan) {
          scan.useKeys(joins, groups);
        }
        return BoxedUnit.UNIT;
      });
      return plan;
    }

    private static boolean has(LogicalPlan plan, Predicate<LogicalPlan> test) {
      return plan.exists(each -> test.test((LogicalPlan) each));
    }
  }
}
