package io.lancepart.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lancepart.spark.Protocol.WriteRequest;
import java.util.Map;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;

/** A write that Python's tasks do and Python's driver side commits; here rows are at most brought together first. */
final class LanceWrite implements LaidOutWrite, CountedWrite {
  private final Map<String, String> options;
  private final LogicalWriteInfo info;
  private final WriteRequest request;
  private final WriteLayout layout;
  private final WriteMetrics metrics = new WriteMetrics();

  LanceWrite(Map<String, String> options, LogicalWriteInfo info, WriteRequest request, WriteLayout layout) {
    this.options = options;
    this.info = info;
    this.request = request;
    this.layout = layout;
  }

  @Override
  public WriteLayout layout() {
    return layout;
  }

  @Override
  public BatchWrite toBatch() {
    var merged = layout.with(Options.merged(options, info.options().asCaseSensitiveMap()));
    return SmallRowBatchWrite.of(new PlannedWrite(merged, request, info.schema(), metrics), info.schema());
  }

  /**
   * One batch of a stream: the query's id stays the same over restarts, so that Python knows a batch that comes again. Of a
   * query in complete mode each batch is the whole result: the session's setting for partitions is about batch jobs.
   */
  @Override
  public StreamingWrite toStreaming() {
    boolean chosen = info.options().containsKey(LanceWriteBuilder.OVERWRITE_MODE);
    String mode = request.mode().equals("dynamic") && !chosen ? "truncate" : request.mode();
    ObjectNode stream = Protocol.JSON.createObjectNode().put("query", info.queryId()).put("mode", mode);
    request.by().forEach(stream.putArray("by")::add);
    return Streams.write(options, stream, info);
  }

  @Override
  public WriteMetrics metrics() {
    return metrics;
  }

  @Override
  public String description() {
    return "lancepart " + request.mode();
  }
}
