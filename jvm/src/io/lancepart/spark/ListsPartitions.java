package io.lancepart.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.SupportsPartitionManagement;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** SHOW PARTITIONS: the values as texts; partitions come and go with their rows, never by themselves. */
interface ListsPartitions extends SupportsPartitionManagement {
  /** The values of each partition, in the order of the schema. */
  JsonNode partitionValues();

  static StructType schema(JsonNode fields) {
    StructType schema = new StructType();
    for (JsonNode field : fields) {
      schema = schema.add(field.asText(), DataTypes.StringType);
    }
    return schema;
  }

  @Override
  default InternalRow[] listPartitionIdentifiers(String[] names, InternalRow wanted) {
    int[] positions = Arrays.stream(names).mapToInt(partitionSchema()::fieldIndex).toArray();
    List<InternalRow> found = new ArrayList<>();
    for (JsonNode row : partitionValues()) {
      Object[] values = new Object[row.size()];
      for (int i = 0; i < values.length; i++) {
        values[i] = row.get(i).isNull() ? null : UTF8String.fromString(row.get(i).asText());
      }
      boolean matches = true;
      for (int i = 0; i < positions.length; i++) {
        Object value = wanted.isNullAt(i) ? null : wanted.getUTF8String(i);
        matches &= Objects.equals(value, values[positions[i]]);
      }
      if (matches) {
        found.add(new GenericInternalRow(values));
      }
    }
    return found.toArray(InternalRow[]::new);
  }

  @Override
  default void createPartition(InternalRow id, Map<String, String> properties) {
    throw refused();
  }

  @Override
  default boolean dropPartition(InternalRow id) {
    throw refused();
  }

  @Override
  default void replacePartitionMetadata(InternalRow id, Map<String, String> properties) {
    throw refused();
  }

  @Override
  default Map<String, String> loadPartitionMetadata(InternalRow id) {
    return Map.of();
  }

  private static UnsupportedOperationException refused() {
    return new UnsupportedOperationException("a partition comes with its first row, and goes with DELETE FROM");
  }
}
