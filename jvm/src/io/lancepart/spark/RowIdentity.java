package io.lancepart.spark;

import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/**
 * The columns that identify a row: its leaf at the version that is read, and the row's address there.
 *
 * <p>The first is a digest that Python computes from the leaf alone, and checks when the rows are changed; here it is only
 * carried along.
 */
record RowIdentity(String name, DataType dataType) implements MetadataColumn {
  private static final RowIdentity LEAF = new RowIdentity("__lancepart_leaf", DataTypes.LongType);
  private static final RowIdentity ADDRESS = new RowIdentity("__lancepart_address", DataTypes.LongType);

  static RowIdentity[] columns() {
    return new RowIdentity[] {LEAF, ADDRESS};
  }

  static List<String> names() {
    return Arrays.stream(columns()).map(RowIdentity::name).toList();
  }

  static NamedReference[] references() {
    return names().stream().map(Keys::column).toArray(NamedReference[]::new);
  }

  @Override
  public boolean isNullable() {
    return false;
  }
}
