package io.lancepart.spark;

import java.util.Set;
import org.apache.arrow.vector.BaseVariableWidthVector;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.BitVector;
import org.apache.arrow.vector.DateDayVector;
import org.apache.arrow.vector.DecimalVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.Float4Vector;
import org.apache.arrow.vector.Float8Vector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.SmallIntVector;
import org.apache.arrow.vector.TimeStampMicroTZVector;
import org.apache.arrow.vector.TimeStampMicroVector;
import org.apache.arrow.vector.TinyIntVector;
import org.apache.arrow.vector.ValueVector;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A column of plain values read where Arrow has them: Spark's own view of it asks for every value twice whether it is
 * there, and makes a decimal by way of bytes.
 */
final class ArrowValueColumn extends ColumnVector {
  private static final Set<Class<? extends ValueVector>> PLAIN = Set.of(
      BitVector.class, TinyIntVector.class, SmallIntVector.class, IntVector.class, BigIntVector.class,
      Float4Vector.class, Float8Vector.class, DecimalVector.class, DateDayVector.class, TimeStampMicroVector.class,
      TimeStampMicroTZVector.class, VarCharVector.class, VarBinaryVector.class);

  private final ArrowColumnVector inner;
  private final int nulls;
  private final long present;
  private final long values;
  private final long offsets;

  private ArrowValueColumn(ArrowColumnVector inner, FieldVector vector) {
    super(inner.dataType());
    this.inner = inner;
    this.nulls = vector.getNullCount();
    this.present = vector.getValidityBufferAddress();
    this.values = vector.getDataBufferAddress();
    this.offsets = vector instanceof BaseVariableWidthVector ? vector.getOffsetBufferAddress() : 0;
  }

  static ColumnVector of(ArrowColumnVector column) {
    ValueVector vector = column.getValueVector();
    return PLAIN.contains(vector.getClass()) ? new ArrowValueColumn(column, (FieldVector) vector) : column;
  }

  private static boolean bit(long bits, int row) {
    return (Platform.getByte(null, bits + (row >> 3)) >> (row & 7) & 1) != 0;
  }

  private int offset(int row) {
    return Platform.getInt(null, offsets + 4L * row);
  }

  @Override
  public boolean hasNull() {
    return nulls > 0;
  }

  @Override
  public int numNulls() {
    return nulls;
  }

  @Override
  public boolean isNullAt(int row) {
    return nulls > 0 && !bit(present, row);
  }

  @Override
  public boolean getBoolean(int row) {
    return bit(values, row);
  }

  @Override
  public byte getByte(int row) {
    return Platform.getByte(null, values + row);
  }

  @Override
  public short getShort(int row) {
    return Platform.getShort(null, values + 2L * row);
  }

  @Override
  public int getInt(int row) {
    return Platform.getInt(null, values + 4L * row);
  }

  @Override
  public long getLong(int row) {
    return Platform.getLong(null, values + 8L * row);
  }

  @Override
  public float getFloat(int row) {
    return Platform.getFloat(null, values + 4L * row);
  }

  @Override
  public double getDouble(int row) {
    return Platform.getDouble(null, values + 8L * row);
  }

  /**
   * A decimal has sixteen bytes, of which the upper eight repeat the sign of the lower ones unless it is very large. One of at
   * most 18 digits never is, and needs no check: its column's type says so.
   */
  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    if (isNullAt(row)) {
      return null;
    }
    long low = Platform.getLong(null, values + 16L * row);
    if (precision <= Decimal.MAX_LONG_DIGITS()) {
      return Decimal.createUnsafe(low, precision, scale);
    }
    long high = Platform.getLong(null, values + 16L * row + 8);
    return high == low >> 63 ? Decimal.apply(low, precision, scale) : inner.getDecimal(row, precision, scale);
  }

  @Override
  public UTF8String getUTF8String(int row) {
    if (isNullAt(row)) {
      return null;
    }
    int start = offset(row);
    return UTF8String.fromAddress(null, values + start, offset(row + 1) - start);
  }

  @Override
  public byte[] getBinary(int row) {
    if (isNullAt(row)) {
      return null;
    }
    int start = offset(row);
    byte[] found = new byte[offset(row + 1) - start];
    Platform.copyMemory(null, values + start, found, Platform.BYTE_ARRAY_OFFSET, found.length);
    return found;
  }

  @Override
  public ColumnarArray getArray(int row) {
    return inner.getArray(row);
  }

  @Override
  public ColumnarMap getMap(int row) {
    return inner.getMap(row);
  }

  @Override
  public ColumnVector getChild(int ordinal) {
    return inner.getChild(ordinal);
  }

  @Override
  public void close() {}
}
