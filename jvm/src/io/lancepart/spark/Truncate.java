package io.lancepart.spark;

import java.io.Serializable;
import java.math.BigDecimal;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;

/** {@code truncate_3(x)}, or {@code truncate(3, x)} when the width is 0 here. */
record Truncate(int width) implements UnboundFunction {
  @Override
  public String name() {
    return width == 0 ? "truncate" : "truncate_" + width;
  }

  @Override
  public String description() {
    return name() + ": the first characters of a text, or a number without its remainder by the width";
  }

  @Override
  public BoundFunction bind(StructType input) {
    int at = width == 0 ? 1 : 0;
    if (input.length() != at + 1 || (at == 1 && !(input.fields()[0].dataType() instanceof IntegerType))) {
      throw new UnsupportedOperationException("truncate takes a width and what to shorten");
    }
    DataType type = input.fields()[at].dataType();
    boolean integer = type instanceof ByteType || type instanceof ShortType || type instanceof IntegerType
        || type instanceof LongType;
    if (!integer && !(type instanceof DecimalType || type instanceof StringType || type instanceof BinaryType)) {
      throw new UnsupportedOperationException("truncate is not defined for " + type.sql());
    }
    return new Bound(name(), width, type);
  }

  record Bound(String name, int width, DataType type) implements ScalarFunction<Object>, Serializable {
    @Override
    public DataType[] inputTypes() {
      return width == 0 ? new DataType[] {DataTypes.IntegerType, type} : new DataType[] {type};
    }

    @Override
    public DataType resultType() {
      return type;
    }

    @Override
    public String canonicalName() {
      return "lancepart." + name + "[" + type.catalogString() + "]";
    }

    @Override
    public Object produceResult(InternalRow row) {
      int at = width == 0 ? 1 : 0;
      if (row.isNullAt(at) || row.isNullAt(0)) {
        return null;
      }
      int by = width == 0 ? row.getInt(0) : width;
      if (by < 1) {
        throw new IllegalArgumentException("truncate needs a width from 1 up, not " + by);
      }
      if (type instanceof StringType) {
        return row.getUTF8String(at).substring(0, by);
      } else if (type instanceof BinaryType) {
        byte[] bytes = row.getBinary(at);
        return Arrays.copyOf(bytes, Math.min(by, bytes.length));
      } else if (type instanceof DecimalType decimal) {
        BigDecimal value = row.getDecimal(at, decimal.precision(), decimal.scale()).toJavaBigDecimal();
        BigDecimal rest = value.remainder(BigDecimal.valueOf(by));
        return Decimal.apply(value.subtract(rest), decimal.precision(), decimal.scale());
      } else if (type instanceof ByteType) {
        return (byte) (row.getByte(at) - row.getByte(at) % by);
      } else if (type instanceof ShortType) {
        return (short) (row.getShort(at) - row.getShort(at) % by);
      } else if (type instanceof IntegerType) {
        return row.getInt(at) - row.getInt(at) % by;
      }
      return row.getLong(at) - row.getLong(at) % by;
    }
  }
}
