package io.lancepart.spark;

import com.fasterxml.jackson.databind.JsonNode;
import io.lancepart.spark.Protocol.WriteRequest;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.DeltaBatchWrite;
import org.apache.spark.sql.connector.write.DeltaWrite;
import org.apache.spark.sql.connector.write.DeltaWriter;
import org.apache.spark.sql.connector.write.DeltaWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Rows that go and rows that come, to Python as one table: a row has either its columns or the place of one that goes. */
record RowWrite(
    Map<String, String> options, LogicalWriteInfo info, long version, List<JsonNode> handled, List<JsonNode> pushed,
    String command)
    implements DeltaWrite {
  @Override
  public DeltaBatchWrite toBatch() {
    StructType ids = info.rowIdSchema().orElseThrow();
    StructType rows = joined(info.schema(), ids);
    var request = new WriteRequest("rows", Python.json(rows), List.of(), handled, pushed, version, command);
    var merged = Options.merged(options, info.options().asCaseSensitiveMap());
    return new Batch(new PlannedWrite(merged, request, rows), info.schema().size(), ids.size());
  }

  private static StructType joined(StructType columns, StructType ids) {
    return new StructType(Stream.of(columns, ids).flatMap(each -> Stream.of(each.fields()))
        .map(each -> new StructField(each.name(), each.dataType(), true, each.metadata()))
        .toArray(StructField[]::new));
  }

  @Override
  public String description() {
    return "lancepart rows";
  }

  /** Not the options, which may hold credentials: Spark shows a write in its plans. */
  @Override
  public String toString() {
    return description();
  }

  record Batch(BatchWrite inner, int columns, int ids) implements DeltaBatchWrite {
    @Override
    public DeltaWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
      return new Factory(inner.createBatchWriterFactory(info), columns, ids);
    }

    @Override
    public boolean useCommitCoordinator() {
      return inner.useCommitCoordinator();
    }

    @Override
    public void onDataWriterCommit(WriterCommitMessage message) {
      inner.onDataWriterCommit(message);
    }

    @Override
    public void commit(WriterCommitMessage[] messages) {
      inner.commit(messages);
    }

    @Override
    public void abort(WriterCommitMessage[] messages) {
      inner.abort(messages);
    }
  }

  record Factory(DataWriterFactory inner, int columns, int ids) implements DeltaWriterFactory {
    @Override
    public DeltaWriter<InternalRow> createWriter(int partition, long task) {
      return new RowByRow(inner.createWriter(partition, task), columns, ids);
    }
  }
}
