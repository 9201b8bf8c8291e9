package io.lancepart.spark;

import java.io.Serializable;
import java.time.LocalDate;
import java.util.function.LongFunction;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.Reducer;
import org.apache.spark.sql.connector.catalog.functions.ReducibleFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/**
 * Parts of a date or timestamp in UTC, and the parts from the year down as one number.
 *
 * <p>Partitions by year, month and day of one column are reported to Spark as one {@code year_month_day}, which rolls up to
 * {@code year_month} and {@code year}; the day of a month on its own rolls up to nothing.
 */
enum TimeFunction implements UnboundFunction {
  YEAR(0, hours -> date(hours).getYear()),
  YEAR_MONTH(1, hours -> months(date(hours))),
  YEAR_MONTH_DAY(2, hours -> (int) Math.floorDiv(hours, 24L)),
  YEAR_MONTH_DAY_HOUR(3, hours -> hours),
  MONTH(-1, hours -> date(hours).getMonthValue()),
  DAY(-1, hours -> date(hours).getDayOfMonth()),
  HOUR(-1, hours -> (int) Math.floorMod(hours, 24L));

  private static final long MICROS_PER_HOUR = 3_600_000_000L;

  private final int depth;
  private final LongFunction<Object> part;

  TimeFunction(int depth, LongFunction<Object> part) {
    this.depth = depth;
    this.part = part;
  }

  private static LocalDate date(long hours) {
    return LocalDate.ofEpochDay(Math.floorDiv(hours, 24L));
  }

  private static int months(LocalDate date) {
    return date.getYear() * 12 + date.getMonthValue() - 1;
  }

  @Override
  public String description() {
    return name() + " of a date or timestamp, in UTC";
  }

  private boolean countsHours() {
    return this == HOUR || this == YEAR_MONTH_DAY_HOUR;
  }

  @Override
  public BoundFunction bind(StructType input) {
    DataType type = input.length() == 1 ? input.fields()[0].dataType() : null;
    boolean timestamp = type instanceof TimestampType || type instanceof TimestampNTZType;
    if (!timestamp && (countsHours() || !(type instanceof DateType))) {
      throw new UnsupportedOperationException(name() + " takes a timestamp" + (countsHours() ? "" : " or a date"));
    }
    return new Bound(this, type);
  }

  /** What a value of a deeper function is in this one. */
  private Object of(TimeFunction deeper, long value) {
    return switch (deeper) {
      case YEAR_MONTH -> (int) Math.floorDiv(value, 12L);
      case YEAR_MONTH_DAY -> part.apply(value * 24);
      default -> part.apply(value);
    };
  }

  DataType type() {
    return this == YEAR_MONTH_DAY_HOUR ? DataTypes.LongType : DataTypes.IntegerType;
  }

  record Bound(TimeFunction function, DataType input)
      implements ScalarFunction<Object>, ReducibleFunction<Object, Object>, Serializable {
    @Override
    public DataType[] inputTypes() {
      return new DataType[] {input};
    }

    @Override
    public DataType resultType() {
      return function.type();
    }

    @Override
    public String name() {
      return function.name().toLowerCase(java.util.Locale.ROOT);
    }

    @Override
    public String canonicalName() {
      return "lancepart." + name() + "[" + input.catalogString() + "]";
    }

    @Override
    public Object produceResult(InternalRow row) {
      if (row.isNullAt(0)) {
        return null;
      }
      long hours = input instanceof DateType
          ? row.getInt(0) * 24L
          : Math.floorDiv(row.getLong(0), MICROS_PER_HOUR);
      return function.part.apply(hours);
    }

    @Override
    public Reducer<Object, Object> reducer(ReducibleFunction<?, ?> other) {
      boolean rolls = other instanceof Bound bound && bound.input.equals(input)
          && bound.function.depth >= 0 && bound.function.depth < function.depth;
      return rolls ? new RollUp(function, ((Bound) other).function) : null;
    }
  }

  /** Hours to days to months to years. */
  record RollUp(TimeFunction from, TimeFunction to) implements Reducer<Object, Object>, Serializable {
    @Override
    public Object reduce(Object value) {
      return value == null ? null : to.of(from, ((Number) value).longValue());
    }

    /** Called from Spark 4.2 on, so that it overrides nothing in earlier ones. */
    public DataType resultType() {
      return to.type();
    }

    /** Called from Spark 4.2 on. */
    public String displayName() {
      return from + " as " + to;
    }
  }
}
