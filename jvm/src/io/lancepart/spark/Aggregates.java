package io.lancepart.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.Set;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;

/** COUNT, MIN and MAX over everything, which each task answers for its part and Spark puts together. */
final class Aggregates {
  private Aggregates() {}

  /** The aggregates as JSON; null when Python can't answer all of them just as Spark would. */
  static ArrayNode json(Aggregation aggregation, Set<String> columns) {
    if (aggregation.groupByExpressions().length > 0) {
      return null;
    }
    ArrayNode all = Python.JSON.createArrayNode();
    for (AggregateFunc each : aggregation.aggregateExpressions()) {
      if (each instanceof CountStar) {
        all.addObject().put("name", "count");
      } else if (each instanceof Count count && !count.isDistinct() && name(count.column()) != null) {
        all.addObject().put("name", "count").put("column", name(count.column()));
      } else if (each instanceof Min min && columns.contains(String.valueOf(name(min.column())))) {
        all.addObject().put("name", "min").put("column", name(min.column()));
      } else if (each instanceof Max max && columns.contains(String.valueOf(name(max.column())))) {
        all.addObject().put("name", "max").put("column", name(max.column()));
      } else {
        return null;
      }
    }
    return all;
  }

  private static String name(Expression expression) {
    return expression instanceof NamedReference reference && reference.fieldNames().length == 1
        ? reference.fieldNames()[0]
        : null;
  }
}
