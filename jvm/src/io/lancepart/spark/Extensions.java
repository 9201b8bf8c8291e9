package io.lancepart.spark;

import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.classic.SparkSession;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * {@code spark.sql.extensions}: informs scans whether their query has a use for keys, each of which costs a task, and
 * Spark which side of a join is small; leaves filters to Python that it applies exactly, and the first step of an
 * aggregation; and brings the table function {@code lance_search}.
 */
public final class Extensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectPlannerStrategy(session -> new KeysWhereNeeded((SparkSession) session));
    extensions.injectPlannerStrategy(session -> new PartialAggregateStrategy((SparkSession) session));
    extensions.injectPlannerStrategy(session -> new RuntimeFilterStrategy((SparkSession) session));
    extensions.injectPlannerStrategy(session -> new AppliedFilterStrategy());
    extensions.injectPlannerStrategy(session -> new HashJoinStrategy((SparkSession) session));
    extensions.injectHintResolutionRule(session -> new MergeSchema((SparkSession) session));
    extensions.injectHintResolutionRule(session -> new MergeTargets((SparkSession) session));
    extensions.injectHintResolutionRule(session -> new DefaultProvider((SparkSession) session));
    extensions.injectTableFunction(SearchFunction.description());
    return BoxedUnit.UNIT;
  }
}
