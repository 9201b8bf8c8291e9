package io.lancepart.spark;

import io.lancepart.spark.Protocol.AbortRequest;
import io.lancepart.spark.Protocol.CommitRequest;
import io.lancepart.spark.Protocol.Committed;
import io.lancepart.spark.Protocol.Nothing;
import io.lancepart.spark.Protocol.Operation;
import io.lancepart.spark.Protocol.WriteReply;
import io.lancepart.spark.Protocol.WriteRequest;
import java.util.Arrays;
import java.util.Map;
import java.util.Objects;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.StructType;

/**
 * A write whose tasks run in Spark's Python workers. It is planned and committed by the planning service, beside the driver:
 * there it is known which tasks succeeded, and there is one commit of what they report.
 */
final class PlannedWrite implements BatchWrite {
  private final Map<String, String> options;
  private final Operation operation;
  private final Object request;
  private final StructType schema;
  private byte[] writer;
  private WriteTasks tasks;
  private boolean uncertain;
  private final WriteMetrics metrics;

  PlannedWrite(Map<String, String> options, WriteRequest request, StructType schema, WriteMetrics metrics) {
    this(options, Operation.WRITE, request, schema, metrics);
  }

  PlannedWrite(
      Map<String, String> options, Operation operation, Object request, StructType schema, WriteMetrics metrics) {
    this.options = options;
    this.operation = operation;
    this.request = request;
    this.schema = schema;
    this.metrics = metrics;
  }

  @Override
  public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
    WriteReply planned = Python.request(options, operation, request, WriteReply.class);
    writer = planned.writer();
    tasks = new WriteTasks();
    tasks.begin();
    return SparkInternals.writers(Planner.source(), planned.function(), schema);
  }

  @Override
  public void commit(WriterCommitMessage[] messages) {
    tasks.end();
    var reports = Arrays.stream(messages).filter(Objects::nonNull).map(SparkInternals::report).toList();
    uncertain = true;
    try {
      metrics.done(
          Python.requestOrRefusal(Map.of(), Operation.COMMIT, new CommitRequest(writer, reports), Committed.class));
      uncertain = false;
    } catch (Python.Refused e) {
      uncertain = false;
      throw e.shown();
    }
  }

  /** A commit of which it is not known whether it took effect is not taken back. */
  @Override
  public void abort(WriterCommitMessage[] messages) {
    if (writer == null) {
      return;
    }
    if (!uncertain) {
      tasks.awaitStopped();
      Python.request(Map.of(), Operation.ABORT, new AbortRequest(writer), Nothing.class);
    }
    tasks.end();
  }
}
