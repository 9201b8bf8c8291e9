package io.lancepart.spark;

import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.filter.Predicate;

/** How many keys a filter has that was found at run time, and whether they are worth to be carried to Python. */
final class RuntimeKeys {
  /** Up to so many keys Python gives to Lance, which leaves out rows; more of them are compared with leaves only. */
  private static final int MOST_PUSHED = 1_000;
  /** So many keys for each leaf hit all of them, whatever the leaves hold. */
  private static final int KEYS_A_LEAF = 16;

  private RuntimeKeys() {}

  static boolean mayLeaveOut(Predicate[] predicates, long leaves) {
    long keys = count(predicates);
    return keys <= MOST_PUSHED || keys < KEYS_A_LEAF * leaves;
  }

  private static long count(Expression[] expressions) {
    long found = 0;
    for (Expression each : expressions) {
      found += each instanceof Literal<?> ? 1 : count(each.children());
    }
    return found;
  }
}
