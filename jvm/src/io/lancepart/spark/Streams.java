package io.lancepart.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Streams, whose offsets and commits Spark requests from a Python data source: an option carries what the jar adds. */
final class Streams {
  private static final String STREAM = "lancepart.stream";

  private Streams() {}

  private static CaseInsensitiveStringMap with(Map<String, String> options, ObjectNode stream) {
    Map<String, String> all = Options.checked(options, false);
    all.put(STREAM, stream.toString());
    return new CaseInsensitiveStringMap(all);
  }

  /** A stream whose offsets, tasks and rows are Python's. */
  static MicroBatchStream read(Map<String, String> options, int parallelism, StructType schema, String checkpoint) {
    var wanted = with(options, Protocol.JSON.createObjectNode().put("parallelism", parallelism));
    var table = (SupportsRead) Planner.provider().getTable(schema, new Transform[0], wanted.asCaseSensitiveMap());
    return table.newScanBuilder(wanted).build().toMicroBatchStream(checkpoint);
  }

  /** A writer whose tasks and commits are Python's. */
  static StreamingWrite write(Map<String, String> options, ObjectNode stream, LogicalWriteInfo info) {
    var wanted = with(Options.merged(options, info.options().asCaseSensitiveMap()), stream);
    var table = (SupportsWrite) Planner.provider().getTable(info.schema(), new Transform[0], wanted.asCaseSensitiveMap());
    return table.newWriteBuilder(new LogicalWriteInfo() {
      @Override
      public CaseInsensitiveStringMap options() {
        return wanted;
      }

      @Override
      public String queryId() {
        return info.queryId();
      }

      @Override
      public StructType schema() {
        return info.schema();
      }
    }).build().toStreaming();
  }
}
