package io.lancepart.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;

/** Constant arguments of functions as JSON. */
final class Constants {
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

  private Constants() {}

  static JsonNode json(String name, Expression constant) {
    return json(name, constant.eval(null), constant.dataType());
  }

  private static JsonNode json(String name, Object value, DataType type) {
    if (value == null) {
      return JSON.nullNode();
    } else if (value instanceof UTF8String text) {
      return JSON.textNode(text.toString());
    } else if (value instanceof Boolean flag) {
      return JSON.booleanNode(flag);
    } else if (value instanceof Decimal number) {
      return number.scale() == 0 ? JSON.numberNode(number.toBigDecimal().bigDecimal().toBigInteger())
          : JSON.numberNode(number.toDouble());
    } else if (value instanceof Float || value instanceof Double) {
      return JSON.numberNode(((Number) value).doubleValue());
    } else if (value instanceof Number number && isInteger(type)) {
      return JSON.numberNode(number.longValue());
    } else if (value instanceof ArrayData items && type instanceof ArrayType array) {
      ArrayNode all = JSON.arrayNode(items.numElements());
      for (Object each : items.toObjectArray(array.elementType())) {
        all.add(json(name, each, array.elementType()));
      }
      return all;
    }
    throw new IllegalArgumentException(
        "the argument " + name + " is " + type.sql() + ": give a text, a number, a truth value or an array of them");
  }

  private static boolean isInteger(DataType type) {
    return switch (type.typeName()) {
      case "byte", "short", "integer", "long" -> true;
      default -> false;
    };
  }

  static JsonNode type(DataType type) {
    try {
      return Python.JSON.readTree(type.json());
    } catch (JsonProcessingException e) {
      throw new IllegalStateException("a type is not JSON", e);
    }
  }
}
