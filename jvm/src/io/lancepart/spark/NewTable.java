package io.lancepart.spark;

import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;

/** A table that is not there yet: Python makes it when the first write to it is planned. */
final class NewTable implements StagedTable, SupportsWrite {
  private final PathIdentifier id;
  private final StructType schema;
  private final Transform[] by;

  NewTable(PathIdentifier id, StructType schema, Transform[] by) {
    this.id = id;
    this.schema = schema;
    this.by = by;
  }

  @Override
  public String name() {
    return id.name();
  }

  @Override
  @SuppressWarnings("deprecation")
  public StructType schema() {
    return schema;
  }

  @Override
  public Set<TableCapability> capabilities() {
    return EnumSet.of(TableCapability.BATCH_WRITE, TableCapability.STREAMING_WRITE, TableCapability.TRUNCATE,
        TableCapability.ACCEPT_ANY_SCHEMA);
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new LanceWriteBuilder(id.options(), info, clustering(info.schema()), Map.of())
        .creating(Arrays.stream(by).map(Keys::spelled).toList());
  }

  /** What rows can be brought together by: plain columns, since functions are Python's to read. */
  private Transform[] clustering(StructType rows) {
    String text = id.options().getOrDefault("partition_by", "");
    Stream<String> names = text.isBlank()
        ? Arrays.stream(by).map(each -> each.name().equals("identity") ? each.references()[0].fieldNames()[0] : "")
        : Arrays.stream(text.split(",")).map(String::strip);
    List<String> all = names.toList();
    return Arrays.asList(rows.fieldNames()).containsAll(all)
        ? all.stream().map(each -> Expressions.identity(Keys.column(each).describe())).toArray(Transform[]::new)
        : new Transform[0];
  }

  @Override
  public void commitStagedChanges() {}

  @Override
  public void abortStagedChanges() {}
}
