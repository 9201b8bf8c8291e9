package io.lancepart.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Add;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BinaryArithmetic;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Multiply;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.Subtract;
import org.apache.spark.sql.catalyst.expressions.UnscaledValue;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Average;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum;
import org.apache.spark.sql.execution.aggregate.HashAggregateExec;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Partial aggregates as JSON for Python, one entry for each column of Spark's aggregation buffers. Python computes exactly,
 * with whole numbers and decimals; what would depend on the order of rows, as sums of floats do, is left to Spark, and so is
 * what may overflow where Spark gives NULL for it.
 */
final class PartialAggregates {
  private static final Set<DataType> WHOLE = Set.of(DataTypes.ByteType, DataTypes.ShortType, DataTypes.IntegerType);
  private static final Set<DataType> ORDERED = Set.of(
      DataTypes.ByteType, DataTypes.ShortType, DataTypes.IntegerType, DataTypes.LongType, DataTypes.DateType,
      DataTypes.TimestampType, DataTypes.TimestampNTZType);
  private static final Set<DataType> KEYS = Set.of(DataTypes.StringType, DataTypes.BooleanType);
  private static final int MOST_DIGITS = 38;
  private static final int MOST_DIGITS_OF_A_LONG = 18;

  private final Map<ExprId, String> columns = new HashMap<>();

  PartialAggregates(List<AttributeReference> columns) {
    columns.forEach(each -> this.columns.put(each.exprId(), each.name()));
  }

  /** What the first step of an aggregation computes; null if Python can't compute all of it just as Spark would. */
  ObjectNode json(HashAggregateExec first) {
    ObjectNode found = Python.JSON.createObjectNode();
    ArrayNode keys = found.putArray("keys");
    for (NamedExpression each : CollectionConverters.asJava(first.groupingExpressions())) {
      if (!(each instanceof AttributeReference column) || !columns.containsKey(column.exprId()) || !isKey(column.dataType())) {
        return null;
      }
      keys.add(columns.get(column.exprId()));
    }
    ArrayNode buffers = found.putArray("buffers");
    for (AggregateExpression each : CollectionConverters.asJava(first.aggregateExpressions())) {
      if (each.isDistinct() || each.filter().isDefined() || !add(each.aggregateFunction(), buffers)) {
        return null;
      }
    }
    return found;
  }

  private static boolean isKey(DataType type) {
    return KEYS.contains(type) || ORDERED.contains(type) || type instanceof DecimalType;
  }

  /** Add what a function keeps of rows, in the order of its buffer; false if that is not known here. */
  private boolean add(AggregateFunction function, ArrayNode buffers) {
    List<? extends Attribute> kept = CollectionConverters.asJava(function.aggBufferAttributes());
    if (function instanceof Sum sum && !tries(sum)) {
      return sum.dataType() instanceof DecimalType type ? addSum(sum.child(), type, kept, buffers) : addWhole(sum, kept, buffers);
    } else if (function instanceof Average average && !tries(average)) {
      return addAverage(average, kept, buffers);
    } else if (function instanceof Count count && kept.size() == 1) {
      return addCount(CollectionConverters.asJava(count.children()), buffers);
    } else if (function instanceof Min || function instanceof Max) {
      return addExtreme(function, buffers);
    }
    return false;
  }

  private boolean addSum(Expression child, DecimalType type, List<? extends Attribute> kept, ArrayNode buffers) {
    ObjectNode value = value(child);
    if (value == null || kept.size() != 2 || !kept.get(0).dataType().equals(type)
        || !kept.get(1).dataType().equals(DataTypes.BooleanType) || scale(child) != type.scale()) {
      return false;
    }
    buffers.addObject().put("kind", "sum").put("precision", type.precision()).put("scale", type.scale()).set("value", value);
    buffers.addObject().put("kind", "is_empty").set("value", value);
    return true;
  }

  /** Spark sums decimals of a few digits as the whole numbers that they are without their point. */
  private boolean addWhole(Sum sum, List<? extends Attribute> kept, ArrayNode buffers) {
    Expression child = sum.child() instanceof UnscaledValue unscaled ? unscaled.child() : sum.child();
    boolean fits = child != sum.child() ? child.dataType() instanceof DecimalType : WHOLE.contains(child.dataType());
    String name = column(child);
    if (name == null || !fits || kept.size() != 1 || !kept.get(0).dataType().equals(DataTypes.LongType)) {
      return false;
    }
    buffers.addObject().put("kind", "sum").putObject("value").put("column", name);
    return true;
  }

  private boolean addAverage(Average average, List<? extends Attribute> kept, ArrayNode buffers) {
    ObjectNode value = value(average.child());
    if (value == null || kept.size() != 2 || !(kept.get(0).dataType() instanceof DecimalType type)
        || !kept.get(1).dataType().equals(DataTypes.LongType) || scale(average.child()) != type.scale()) {
      return false;
    }
    buffers.addObject().put("kind", "sum").put("precision", type.precision()).put("scale", type.scale()).set("value", value);
    buffers.addObject().put("kind", "count").putArray("values").add(value);
    return true;
  }

  private boolean addCount(List<Expression> children, ArrayNode buffers) {
    ArrayNode values = Python.JSON.createArrayNode();
    for (Expression each : children) {
      String name = column(each);
      if (name != null) {
        values.addObject().put("column", name);
      } else if (!(each instanceof Literal literal) || literal.value() == null) {
        return false;
      }
    }
    buffers.addObject().put("kind", "count").set("values", values);
    return true;
  }

  private boolean addExtreme(AggregateFunction function, ArrayNode buffers) {
    Expression child = function instanceof Min min ? min.child() : ((Max) function).child();
    String name = column(child);
    if (name == null || !(ORDERED.contains(child.dataType()) || child.dataType() instanceof DecimalType)) {
      return false;
    }
    buffers.addObject().put("kind", function instanceof Min ? "min" : "max").put("column", name);
    return true;
  }

  private String column(Expression expression) {
    return expression instanceof AttributeReference found ? columns.get(found.exprId()) : null;
  }

  private static int scale(Expression expression) {
    return expression.dataType() instanceof DecimalType type ? type.scale() : -1;
  }

  /** Whether a function gives NULL where others overflow, as {@code try_sum} does. */
  private static boolean tries(Expression expression) {
    return isEvaluated(expression, "TRY");
  }

  /** Whether it fails where it overflows. That of a view does as the session did that made the view. */
  private static boolean fails(Expression expression) {
    return isEvaluated(expression, "ANSI");
  }

  /** Whether an expression is evaluated in a mode: all of it that is no expression says so. */
  private static boolean isEvaluated(Expression expression, String mode) {
    return CollectionConverters.asJava(expression.productIterator().toSeq()).stream()
        .anyMatch(each -> !(each instanceof Expression) && String.valueOf(each).contains(mode));
  }

  /** A decimal that is made of columns and literals without rounding; null for anything else. */
  private ObjectNode value(Expression expression) {
    if (!(expression.dataType() instanceof DecimalType type)) {
      return null;
    }
    ObjectNode found = Python.JSON.createObjectNode();
    String name = column(expression);
    if (name != null) {
      return type.precision() <= MOST_DIGITS_OF_A_LONG ? found.put("column", name) : null;
    } else if (expression instanceof Literal literal && literal.value() instanceof Decimal decimal) {
      return found.put("literal", decimal.toJavaBigDecimal().setScale(type.scale()).unscaledValue().toString())
          .put("scale", type.scale());
    }
    String sign = sign(expression);
    return sign == null ? null : operation((BinaryArithmetic) expression, sign, type);
  }

  private static String sign(Expression expression) {
    return expression instanceof Add ? "+" : expression instanceof Subtract ? "-" : expression instanceof Multiply ? "*" : null;
  }

  private ObjectNode operation(BinaryArithmetic operation, String sign, DecimalType type) {
    ObjectNode left = value(operation.left());
    ObjectNode right = value(operation.right());
    if (left == null || right == null || tries(operation)) {
      return null;
    }
    var one = (DecimalType) operation.left().dataType();
    var other = (DecimalType) operation.right().dataType();
    boolean product = sign.equals("*");
    int scale = product ? one.scale() + other.scale() : Math.max(one.scale(), other.scale());
    int digits = product
        ? one.precision() + other.precision() + 1
        : Math.max(one.precision() - one.scale(), other.precision() - other.scale()) + scale + 1;
    if (type.scale() != scale || digits > MOST_DIGITS && !fails(operation)) {
      return null;
    }
    ObjectNode found = Python.JSON.createObjectNode().put("op", sign);
    found.set("left", left);
    found.set("right", right);
    return found;
  }
}
