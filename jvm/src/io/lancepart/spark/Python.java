package io.lancepart.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * One conversation with the Python side: a question in an option, the answer as a schema and as JSON on its first field.
 *
 * <p>Spark's own wrapper keeps what Python answered in itself, so that every conversation has a wrapper of its own:
 * shared by two scans it gives one of them the other's rows.
 */
final class Python {
  static final ObjectMapper JSON = new ObjectMapper();
  private static final String QUESTION = "lancepart.question";
  static final String PLANNED = "planned";
  private static final String ANSWER = "lancepart.answer";

  private final PythonDataSourceV2 provider = Planner.provider();
  private final CaseInsensitiveStringMap options;
  final StructType schema;
  final JsonNode answer;

  private Python(Map<String, String> options, ObjectNode question) {
    this.options = asked(options, question);
    StructField[] fields = provider.inferSchema(this.options).fields();
    this.answer = parse(fields[0].metadata().getString(ANSWER));
    fields[0] = without(fields[0]);
    this.schema = new StructType(fields);
  }

  /** The options with a question among them, after a look that users have not put in one of their own. */
  private static CaseInsensitiveStringMap asked(Map<String, String> options, ObjectNode question) {
    Map<String, String> all = Options.checked(options, question.path("ask").asText().equals(PLANNED));
    all.put(QUESTION, question.toString());
    return new CaseInsensitiveStringMap(all);
  }

  static Python ask(Map<String, String> options, ObjectNode question) {
    return new Python(options, question);
  }

  /** Spark's own scan over what was planned in this conversation. */
  Scan scan() {
    var table = (SupportsRead) provider.getTable(schema, new Transform[0], options.asCaseSensitiveMap());
    return table.newScanBuilder(options).build();
  }

  /** A stream whose offsets, tasks and rows are Python's. */
  static MicroBatchStream stream(Map<String, String> options, int parallelism, StructType schema, String checkpoint) {
    var asked = asked(options, JSON.createObjectNode().put("ask", "stream").put("parallelism", parallelism));
    var table = (SupportsRead) Planner.provider().getTable(schema, new Transform[0], asked.asCaseSensitiveMap());
    return table.newScanBuilder(asked).build().toMicroBatchStream(checkpoint);
  }

  /** A writer whose tasks and commit are Python's. */
  static Write writer(
      Map<String, String> options, ObjectNode question, LogicalWriteInfo info, StructType schema) {
    var asked = asked(Options.merged(options, info.options().asCaseSensitiveMap()), question);
    var table = (SupportsWrite) Planner.provider().getTable(schema, new Transform[0], asked.asCaseSensitiveMap());
    return table.newWriteBuilder(new LogicalWriteInfo() {
      @Override
      public CaseInsensitiveStringMap options() {
        return asked;
      }

      @Override
      public String queryId() {
        return info.queryId();
      }

      @Override
      public StructType schema() {
        return schema;
      }
    }).build();
  }

  private static StructField without(StructField field) {
    var kept = new MetadataBuilder().withMetadata(field.metadata()).remove(ANSWER).build();
    return new StructField(field.name(), field.dataType(), field.nullable(), kept);
  }

  private static JsonNode parse(String text) {
    try {
      return JSON.readTree(text);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException("the answer of lancepart's Python side is not JSON", e);
    }
  }
}
