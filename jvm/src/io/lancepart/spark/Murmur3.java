package io.lancepart.spark;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimeType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/** Murmur3 (x86, 32 bits, seed 0) of Spark's values, by the same bytes as in Python. */
final class Murmur3 {
  private static final int C1 = 0xCC9E2D51;
  private static final int C2 = 0x1B873593;

  private Murmur3() {}

  static boolean supports(DataType type) {
    return type instanceof BooleanType || type instanceof ByteType || type instanceof ShortType
        || type instanceof IntegerType || type instanceof LongType || type instanceof FloatType
        || type instanceof DoubleType || type instanceof DateType || type instanceof TimestampType
        || type instanceof TimestampNTZType || type instanceof TimeType || type instanceof DecimalType
        || type instanceof StringType || type instanceof BinaryType;
  }

  /** The bytes that a value is hashed by: text and binary as they are, decimals unscaled, all else as 8 bytes. */
  static byte[] bytes(InternalRow row, int at, DataType type) {
    if (type instanceof StringType) {
      return row.getUTF8String(at).getBytes();
    } else if (type instanceof BinaryType) {
      return row.getBinary(at);
    } else if (type instanceof DecimalType decimal) {
      var value = row.getDecimal(at, decimal.precision(), decimal.scale());
      return value.toJavaBigDecimal().setScale(decimal.scale()).unscaledValue().toByteArray();
    }
    return ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(number(row, at, type)).array();
  }

  private static long number(InternalRow row, int at, DataType type) {
    if (type instanceof BooleanType) {
      return row.getBoolean(at) ? 1 : 0;
    } else if (type instanceof ByteType) {
      return row.getByte(at);
    } else if (type instanceof ShortType) {
      return row.getShort(at);
    } else if (type instanceof IntegerType || type instanceof DateType) {
      return row.getInt(at);
    } else if (type instanceof FloatType) {
      return Double.doubleToLongBits((double) row.getFloat(at) + 0.0);
    } else if (type instanceof DoubleType) {
      return Double.doubleToLongBits(row.getDouble(at) + 0.0);
    } else if (type instanceof TimeType) {
      return Math.floorDiv(row.getLong(at), 1_000L);
    }
    return row.getLong(at);
  }

  static byte[] joined(Iterable<byte[]> parts) {
    var all = new ByteArrayOutputStream();
    parts.forEach(all::writeBytes);
    return all.toByteArray();
  }

  static int hash(byte[] data) {
    ByteBuffer words = ByteBuffer.wrap(data).order(ByteOrder.LITTLE_ENDIAN);
    int state = 0;
    int blocks = data.length / 4;
    for (int block = 0; block < blocks; block++) {
      state = Integer.rotateLeft(state ^ stirred(words.getInt(block * 4)), 13) * 5 + 0xE6546B64;
    }
    int tail = 0;
    for (int at = data.length - 1; at >= blocks * 4; at--) {
      tail = tail << 8 | data[at] & 0xFF;
    }
    state ^= stirred(tail) ^ data.length;
    state = (state ^ state >>> 16) * 0x85EBCA6B;
    state = (state ^ state >>> 13) * 0xC2B2AE35;
    return state ^ state >>> 16;
  }

  private static int stirred(int word) {
    return Integer.rotateLeft(word * C1, 15) * C2;
  }
}
