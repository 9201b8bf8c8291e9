package io.lancepart.spark;

import io.lancepart.spark.Protocol.KeysReply;
import io.lancepart.spark.Protocol.KeysRequest;
import io.lancepart.spark.Protocol.Operation;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
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
    List<String> spelled = Arrays.stream(by).map(Keys::spelled).toList();
    return new LanceWriteBuilder(id.options(), info, clustering(info, spelled), Map.of()).creating(spelled);
  }

  /** What rows can be brought together by, which Python finds in how the table is to be partitioned. */
  private Transform[] clustering(LogicalWriteInfo info, List<String> spelled) {
    if (!WriteLayout.isGrouped(info.options())) {
      return new Transform[0];
    }
    Map<String, String> all = Options.merged(id.options(), info.options().asCaseSensitiveMap());
    var request = new KeysRequest(Python.json(info.schema()), spelled);
    return Keys.transforms(Python.request(all, Operation.KEYS, request, KeysReply.class).partitioning());
  }

  @Override
  public void commitStagedChanges() {}

  @Override
  public void abortStagedChanges() {}
}
