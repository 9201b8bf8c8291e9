package io.lancepart.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.GeneralScalarExpression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructType;

/** Spark's filters as JSON for Python: literals by the numbers that Catalyst keeps, so that no time zone takes part. */
final class FilterJson {
  private static final Set<String> EXACT =
      Set.of("=", "<>", "<", "<=", ">", ">=", "<=>", "IN", "IS_NULL", "IS_NOT_NULL");
  private static final Set<String> NULL_TESTS = Set.of("IS_NULL", "IS_NOT_NULL");
  private static final Set<String> JOINING = Set.of("AND", "OR", "NOT");

  private FilterJson() {}

  static List<JsonNode> json(List<? extends Expression> expressions) {
    List<JsonNode> found = new ArrayList<>();
    expressions.forEach(each -> found.add(json(each)));
    return found;
  }

  static ObjectNode json(Expression expression) {
    ObjectNode node = Python.JSON.createObjectNode();
    if (expression instanceof NamedReference reference) {
      ArrayNode path = node.putArray("column");
      for (String part : reference.fieldNames()) {
        path.add(part);
      }
    } else if (expression instanceof Literal<?> literal) {
      node.put("type", literal.dataType().typeName());
      node.put("value", text(literal.value()));
    } else if (expression instanceof GeneralScalarExpression scalar) {
      node.put("name", scalar.name());
      ArrayNode children = node.putArray("children");
      for (Expression child : operands(scalar)) {
        children.add(json(child));
      }
    } else {
      node.put("name", "UNKNOWN");
    }
    return node;
  }

  /** Whether Python's answer to a filter is Spark's: comparisons with literals, of columns that are known to agree. */
  static boolean isExact(Expression expression, Set<String> columns) {
    if (!(expression instanceof GeneralScalarExpression scalar)) {
      return false;
    }
    Expression[] children = scalar.children();
    if (JOINING.contains(scalar.name())) {
      for (Expression child : operands(scalar)) {
        if (!isExact(child, columns)) {
          return false;
        }
      }
      return true;
    }
    if (!EXACT.contains(scalar.name()) || !isColumn(children[0], columns)) {
      return false;
    }
    for (int i = 1; i < children.length; i++) {
      if (!(children[i] instanceof Literal<?> literal) || literal.value() == null
          || literal.dataType() instanceof BooleanType) {
        return false;
      }
    }
    return true;
  }

  /** Whether a filter only tests if there is a value in a column. */
  static boolean testsNull(Expression expression) {
    return expression instanceof GeneralScalarExpression scalar && NULL_TESTS.contains(scalar.name())
        && scalar.children()[0] instanceof NamedReference reference && reference.fieldNames().length == 1;
  }

  /** Whether it does so for bytes: Spark would have to be given all of them to do it again. */
  static boolean testsBytes(Expression expression, StructType schema) {
    if (!testsNull(expression)) {
      return false;
    }
    String name = ((NamedReference) expression.children()[0]).fieldNames()[0];
    return Arrays.asList(schema.fieldNames()).contains(name) && schema.apply(name).dataType() instanceof BinaryType;
  }

  /** Whether each decimal that a column is compared with has the very type of the column. */
  static boolean hasTypes(Expression expression, StructType schema) {
    if (!(expression instanceof GeneralScalarExpression scalar)) {
      return true;
    }
    if (JOINING.contains(scalar.name())) {
      return operands(scalar).stream().allMatch(child -> hasTypes(child, schema));
    }
    DataType type = schema.apply(((NamedReference) scalar.children()[0]).fieldNames()[0]).dataType();
    return !(type instanceof DecimalType) || Arrays.stream(scalar.children()).skip(1)
        .allMatch(child -> ((Literal<?>) child).dataType().equals(type));
  }

  /** The operands of a chain of ANDs or ORs, however long: Spark nests them, which no reader of JSON follows far. */
  private static List<Expression> operands(GeneralScalarExpression scalar) {
    if (!scalar.name().equals("AND") && !scalar.name().equals("OR")) {
      return List.of(scalar.children());
    }
    List<Expression> flat = new ArrayList<>();
    Deque<Expression> waiting = new ArrayDeque<>(List.of(scalar.children()));
    while (!waiting.isEmpty()) {
      Expression next = waiting.pop();
      if (next instanceof GeneralScalarExpression inner && inner.name().equals(scalar.name())) {
        for (int i = inner.children().length - 1; i >= 0; i--) {
          waiting.push(inner.children()[i]);
        }
      } else {
        flat.add(next);
      }
    }
    return flat;
  }

  private static boolean isColumn(Expression expression, Set<String> columns) {
    return expression instanceof NamedReference reference
        && reference.fieldNames().length == 1 && columns.contains(reference.fieldNames()[0]);
  }

  private static String text(Object value) {
    if (value == null) {
      return null;
    } else if (value instanceof byte[] bytes) {
      return HexFormat.of().formatHex(bytes);
    } else if (value instanceof Decimal decimal) {
      return decimal.toJavaBigDecimal().toPlainString();
    }
    return value.toString();
  }
}
