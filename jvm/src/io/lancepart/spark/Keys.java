package io.lancepart.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.HexFormat;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** Partition transforms and partition keys: as Python describes them, in Spark's terms. */
final class Keys {
  private Keys() {}

  static NamedReference column(String name) {
    return Expressions.column("`" + name.replace("`", "``") + "`");
  }

  static Transform[] transforms(JsonNode json) {
    Transform[] found = new Transform[json.size()];
    for (int i = 0; i < found.length; i++) {
      String column = json.get(i).get("column").asText();
      String name = json.get(i).get("transform").asText();
      String quoted = "`" + column.replace("`", "``") + "`";
      found[i] = switch (name) {
        case "identity" -> Expressions.identity(quoted);
        case "bucket" -> Expressions.bucket(json.get(i).get("buckets").asInt(), quoted);
        default -> Expressions.apply(name, column(column));
      };
    }
    return found;
  }

  /** The partitioning as users write it, which is not always what Spark can use as keys. */
  static Transform[] written(JsonNode json) {
    Transform[] found = new Transform[json.size()];
    for (int i = 0; i < found.length; i++) {
      String name = json.get(i).get("name").asText();
      JsonNode given = json.get(i).get("arguments");
      Expression[] arguments = new Expression[given.size()];
      for (int j = 0; j < arguments.length; j++) {
        JsonNode each = given.get(j);
        arguments[j] = each.has("column") ? column(each.get("column").asText())
            : each.has("number") ? Expressions.literal(each.get("number").asInt())
            : Expressions.literal(each.get("text").asText());
      }
      found[i] = name.equals("identity") && arguments[0] instanceof NamedReference reference
          ? Expressions.identity(reference.describe()) : Expressions.apply(name, arguments);
    }
    return found;
  }

  /** A transform that a user wrote, as Python's {@code partition_by} reads it. */
  static String spelled(Transform transform) {
    String[] parts = new String[transform.arguments().length];
    for (int i = 0; i < parts.length; i++) {
      Expression each = transform.arguments()[i];
      parts[i] = each instanceof NamedReference reference
          ? "\"" + String.join(".", reference.fieldNames()).replace("\"", "\"\"") + "\""
          : each.describe();
    }
    return transform.name().equals("identity") ? parts[0] : transform.name() + "(" + String.join(", ", parts) + ")";
  }

  /** The type of each part of a key: that of the function which makes it, and of the column where there is none. */
  static DataType[] types(JsonNode json, StructType schema) {
    Transform[] transforms = transforms(json);
    DataType[] types = new DataType[transforms.length];
    for (int i = 0; i < types.length; i++) {
      String column = json.get(i).get("column").asText();
      UnboundFunction function = Functions.find(transforms[i].name());
      types[i] = function == null ? schema.apply(column).dataType()
          : function.bind(arguments(transforms[i], schema.apply(column))).resultType();
    }
    return types;
  }

  /** The arguments of a transform as its function is bound to them. */
  private static StructType arguments(Transform transform, StructField column) {
    StructType found = new StructType();
    for (Expression each : transform.arguments()) {
      found = each instanceof Literal<?> literal ? found.add("number", literal.dataType()) : found.add(column);
    }
    return found;
  }

  static Object[] key(JsonNode json, DataType[] types) {
    Object[] key = new Object[types.length];
    for (int i = 0; i < types.length; i++) {
      key[i] = json.get(i).isNull() ? null : value(json.get(i), types[i]);
    }
    return key;
  }

  /** A part of a key as Catalyst holds it inside its rows. */
  private static Object value(JsonNode json, DataType type) {
    if (type instanceof IntegerType || type instanceof DateType) {
      return json.asInt();
    } else if (type instanceof ShortType) {
      return (short) json.asInt();
    } else if (type instanceof ByteType) {
      return (byte) json.asInt();
    } else if (type instanceof BooleanType) {
      return json.asBoolean();
    } else if (type instanceof StringType) {
      return UTF8String.fromString(json.asText());
    } else if (type instanceof BinaryType) {
      return HexFormat.of().parseHex(json.asText());
    } else if (type instanceof DecimalType decimal) {
      var exact = new BigDecimal(new BigInteger(json.asText()), decimal.scale());
      return Decimal.apply(exact, decimal.precision(), decimal.scale());
    }
    return json.asLong();
  }
}
