package io.lancepart.spark;

import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/** Where a row of a snapshot stands: the number of its leaf, and its address there. */
record Places(String name, DataType dataType) implements MetadataColumn {
  private static final Places LEAF = new Places("__lancepart_leaf", DataTypes.IntegerType);
  private static final Places ADDRESS = new Places("__lancepart_address", DataTypes.LongType);

  static Places[] columns() {
    return new Places[] {LEAF, ADDRESS};
  }

  static List<String> names() {
    return Arrays.stream(columns()).map(Places::name).toList();
  }

  static NamedReference[] references() {
    return names().stream().map(Keys::column).toArray(NamedReference[]::new);
  }

  @Override
  public boolean isNullable() {
    return false;
  }
}
