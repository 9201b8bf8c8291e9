package io.lancepart.spark;

import java.io.Serializable;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.Reducer;
import org.apache.spark.sql.connector.catalog.functions.ReducibleFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.StructType;

/** {@code bucket(n, x)} and {@code multi_bucket(n, x, y, …)}. */
record Bucket(boolean several) implements UnboundFunction {
  @Override
  public String name() {
    return several ? "multi_bucket" : "bucket";
  }

  @Override
  public String description() {
    return name() + "(n, x): which of n buckets a value falls into, by its murmur3 hash";
  }

  @Override
  public BoundFunction bind(StructType input) {
    DataType[] types = Arrays.stream(input.fields()).map(field -> field.dataType()).toArray(DataType[]::new);
    boolean counted = several ? types.length >= 2 : types.length == 2;
    if (!counted || !(types[0] instanceof IntegerType)) {
      throw new UnsupportedOperationException(name() + " takes a number of buckets and what to hash");
    }
    for (int i = 1; i < types.length; i++) {
      if (!Murmur3.supports(types[i])) {
        throw new UnsupportedOperationException(name() + " is not defined for " + types[i].sql());
      }
    }
    return new Bound(name(), List.of(types));
  }

  record Bound(String name, List<DataType> types)
      implements ScalarFunction<Integer>, ReducibleFunction<Integer, Integer>, Serializable {
    @Override
    public DataType[] inputTypes() {
      return types.toArray(DataType[]::new);
    }

    /** Called from Spark 4.2 on, so that it overrides nothing in earlier ones. */
    public DataType resultType() {
      return DataTypes.IntegerType;
    }

    @Override
    public String canonicalName() {
      return "lancepart." + name + types.subList(1, types.size()).stream().map(DataType::catalogString).toList();
    }

    @Override
    public Integer produceResult(InternalRow row) {
      List<byte[]> parts = new ArrayList<>();
      for (int at = 1; at < types.size(); at++) {
        if (!row.isNullAt(at)) {
          parts.add(Murmur3.bytes(row, at, types.get(at)));
        }
      }
      if (parts.isEmpty() || row.isNullAt(0)) {
        return null;
      }
      int buckets = row.getInt(0);
      if (buckets < 1) {
        throw new IllegalArgumentException(name + " needs a number of buckets from 1 up, not " + buckets);
      }
      long distance = Math.abs((long) Murmur3.hash(Murmur3.joined(parts)));
      return (int) (distance % buckets);
    }

    /** Both sides come down to the greatest number of buckets that divides each of theirs. */
    @Override
    public Reducer<Integer, Integer> reducer(int mine, ReducibleFunction<?, ?> other, int theirs) {
      if (!(other instanceof Bound bound) || !bound.canonicalName().equals(canonicalName())) {
        return null;
      }
      int common = BigInteger.valueOf(mine).gcd(BigInteger.valueOf(theirs)).intValue();
      return common > 1 && common != mine ? new Modulo(common) : null;
    }
  }

  /** A bucket of many as a bucket of fewer. */
  record Modulo(int buckets) implements Reducer<Integer, Integer>, Serializable {
    @Override
    public Integer reduce(Integer bucket) {
      return bucket == null ? null : bucket % buckets;
    }

    /** Called from Spark 4.2 on, so that it overrides nothing in earlier ones. */
    public DataType resultType() {
      return DataTypes.IntegerType;
    }

    /** Called from Spark 4.2 on. */
    public String displayName() {
      return "modulo " + buckets;
    }
  }
}
