package io.lancepart.spark;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A MERGE that only inserts is to Spark an INSERT of the rows that an anti join leaves, of which the write does not know: two
 * of them at once would both add a row that neither found. So the target of such a MERGE has an option that tells the write.
 */
final class MergeTargets extends Rule<LogicalPlan> {
  private final SparkSession session;

  MergeTargets(SparkSession session) {
    this.session = session;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (plan instanceof MergeIntoTable merge) {
      boolean inserts = merge.matchedActions().isEmpty() && merge.notMatchedBySourceActions().isEmpty();
      return inserts ? changed(merge, merge.targetTable(), marked(merge.targetTable())) : merge;
    }
    LogicalPlan found = plan;
    for (LogicalPlan child : CollectionConverters.asJava(plan.children())) {
      found = changed(found, child, apply(child));
    }
    return found;
  }

  private LogicalPlan marked(LogicalPlan target) {
    if (target instanceof SubqueryAlias alias) {
      return changed(alias, alias.child(), marked(alias.child()));
    }
    if (!(target instanceof UnresolvedRelation relation) || relation.options().containsKey(Options.INSERTING)
        || !Targets.isOurs(session, relation)) {
      return target;
    }
    Map<String, String> options = new HashMap<>(relation.options().asCaseSensitiveMap());
    options.put(Options.INSERTING, "true");
    return relation.copy(relation.multipartIdentifier(), new CaseInsensitiveStringMap(options), relation.isStreaming());
  }

  /** A plan with another child in the place of one. */
  private static LogicalPlan changed(LogicalPlan plan, LogicalPlan old, LogicalPlan now) {
    if (old == now) {
      return plan;
    }
    List<LogicalPlan> children = CollectionConverters.asJava(plan.children()).stream()
        .map(each -> each == old ? now : each).toList();
    return (LogicalPlan) plan.withNewChildren(CollectionConverters.asScala(children).toSeq());
  }
}
