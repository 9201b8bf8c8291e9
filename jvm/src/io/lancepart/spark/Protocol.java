package io.lancepart.spark;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.MapperFeature;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;

/**
 * The messages between the jar and the planning service. {@code protocol.py} and {@code operations.py} have the same ones:
 * golden files are read and written again by both sides.
 */
final class Protocol {
  /** Changes whenever a message of one side would mean something else, or nothing, to the other. */
  static final int VERSION = 3;

  static final JsonMapper JSON = JsonMapper.builder(JsonFactory.builder()
          .streamReadConstraints(StreamReadConstraints.builder().maxStringLength(Integer.MAX_VALUE).build())
          .build())
      .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
      .enable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
      .disable(MapperFeature.ALLOW_COERCION_OF_SCALARS)
      .serializationInclusion(JsonInclude.Include.NON_NULL)
      .build();

  private Protocol() {}

  /** A message: what travels between the two processes. */
  sealed interface Envelope permits Hello, Request, Cancel, Reply, Failure, Progress, Warned, Work, Worked {}

  record Hello(int protocol, String lancepart) implements Envelope {}

  record Request(long id, String op, JsonNode body, Map<String, String> options) implements Envelope {
    /** Not the options, which may hold credentials. */
    @Override
    public String toString() {
      return "request " + id + " " + op;
    }
  }

  record Cancel(long id) implements Envelope {}

  record Reply(long id, JsonNode body) implements Envelope {}

  record Failure(long id, String error, int code, String message) implements Envelope {}

  record Progress(long id, String what, long done, Long total) implements Envelope {}

  record Warned(String message) implements Envelope {}

  /** Pieces of a request's work for Spark's tasks; the request goes on when their results arrive. */
  record Work(long id, String what, byte[] function, List<byte[]> tasks) implements Envelope {}

  record Worked(long id, List<byte[]> results, String error) implements Envelope {}

  private static final Map<String, Class<? extends Envelope>> KINDS = Map.of(
      "hello", Hello.class, "request", Request.class, "cancel", Cancel.class,
      "reply", Reply.class, "failure", Failure.class, "progress", Progress.class, "warning", Warned.class,
      "work", Work.class, "worked", Worked.class);

  static Envelope parse(JsonNode message) {
    ObjectNode fields = message.deepCopy();
    JsonNode kind = fields.remove("kind");
    Class<? extends Envelope> type = kind == null ? null : KINDS.get(kind.asText());
    if (type == null) {
      throw new IllegalStateException("there is no message " + kind + ": use the jar inside lancepart");
    }
    return read(fields, type);
  }

  static ObjectNode dump(Envelope message) {
    ObjectNode found = JSON.createObjectNode();
    KINDS.forEach((kind, type) -> {
      if (type.isInstance(message)) {
        found.put("kind", kind);
      }
    });
    found.setAll((ObjectNode) JSON.valueToTree(message));
    return found;
  }

  static <T> T read(JsonNode body, Class<T> type) {
    try {
      return JSON.treeToValue(body, type);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException(
          "a message of lancepart's Python side is not what the jar expects (" + type.getSimpleName()
              + "): use the jar inside lancepart", e);
    }
  }

  record Nothing() {}

  record TableInfo(
      long version, List<String> sources, List<String> exact, JsonNode partitioning, JsonNode by, JsonNode fields,
      boolean snapshots) {}

  record TableReply(JsonNode schema, TableInfo table) {}

  record ExistsReply(boolean exists) {}

  record ScanRequest(
      long version, List<String> columns, List<JsonNode> handled, List<JsonNode> pushed, List<JsonNode> runtime,
      List<JsonNode> aggregates, Integer limit, int parallelism, JsonNode partitioning, long inlineBytes, JsonNode partial) {}

  record ReadPlan(byte[] function, List<byte[]> tasks, boolean inline) {}

  record ScanReply(
      JsonNode schema, ReadPlan read, int tasks, JsonNode keys, JsonNode partitioning, long rows, long bytes,
      long estimatedBytes, long leavesRead, long leavesPruned, long fragments, long fileBytes, List<String> reasons,
      List<Integer> unused) {}

  record HandedOverRequest(List<String> columns) {}

  record ReadOnlySource(String kind, String location, long version) {}

  record ReadOnlyRequest(ReadOnlySource table, List<String> columns, int parallelism) {}

  record RowsReply(JsonNode schema, ReadPlan read, Long rows, Long bytes) {}

  record SearchRequest(
      long version, @JsonInclude(content = JsonInclude.Include.ALWAYS) Map<String, JsonNode> arguments,
      Map<String, JsonNode> varying) {}

  record SearchReply(JsonNode schema, byte[] function) {}

  record SearchRowsRequest(
      long version, @JsonInclude(content = JsonInclude.Include.ALWAYS) Map<String, JsonNode> arguments,
      List<String> columns) {}

  record InlineReply(byte[] rows) {}

  record EvolveRequest(JsonNode changes) {}

  record KeysRequest(JsonNode schema, List<String> by) {}

  record KeysReply(JsonNode partitioning) {}

  record PartitionsRequest(long version) {}

  record PartitionsReply(JsonNode partitions) {}

  record DeleteRequest(List<JsonNode> where) {}

  record Committed(Long version, long rows, long files, long bytes, long removed) {}

  record WriteRequest(
      String mode, JsonNode schema, List<String> by, List<JsonNode> handled, List<JsonNode> pushed, Long version,
      String command) {}

  record PlainWriteRequest(
      List<String> id, String mode, JsonNode schema, List<JsonNode> pushed, Long version) {}

  record WriteReply(byte[] function, byte[] writer) {}

  record CommitRequest(byte[] writer, List<byte[]> reports) {}

  record AbortRequest(byte[] writer) {}

  record PathRequest(List<String> id) {}

  record NamesReply(List<String> names) {}

  record PropertiesReply(Map<String, String> properties) {}

  record PropertiesRequest(
      List<String> id, @JsonInclude(content = JsonInclude.Include.ALWAYS) Map<String, String> properties) {}

  record DropNamespaceRequest(List<String> id, boolean cascade) {}

  record LoadRequest(List<String> id, String version, Long timestamp) {}

  record CreateRequest(List<String> id, String mode, JsonNode schema, List<String> by, Map<String, String> properties) {}

  record Staged(List<String> id, String location, Map<String, String> properties, String replaced) {}

  record LoadReply(
      JsonNode schema, Map<String, String> properties, String path, TableInfo table, String plain, ReadOnlySource readOnly,
      Staged staged) {}

  record DroppedReply(boolean dropped) {}

  record RenameRequest(List<String> id, List<String> to) {}

  record AlterRequest(List<String> id, JsonNode changes) {}

  record Parameter(String name, String comment, String type, @JsonProperty("default") String defaultValue) {}

  record ProcedureInfo(String comment, List<Parameter> parameters) {}

  record ProceduresReply(String namespace, Map<String, ProcedureInfo> procedures) {}

  record CallRequest(String procedure, String catalog, JsonNode arguments, int parallelism) {}

  record CallReply(JsonNode schema, JsonNode rows) {}

  /** The operations: the types of a request and of its reply, and whether it changes a table or a catalog. */
  enum Operation {
    TABLE(Nothing.class, TableReply.class, false),
    EXISTS(Nothing.class, ExistsReply.class, false),
    SCAN(ScanRequest.class, ScanReply.class, false),
    HANDED_OVER(HandedOverRequest.class, RowsReply.class, false),
    READ_ONLY(ReadOnlyRequest.class, RowsReply.class, false),
    SEARCH(SearchRequest.class, SearchReply.class, false),
    SEARCH_ROWS(SearchRowsRequest.class, InlineReply.class, false),
    KEYS(KeysRequest.class, KeysReply.class, false),
    EVOLVE(EvolveRequest.class, Nothing.class, true),
    PARTITIONS(PartitionsRequest.class, PartitionsReply.class, false),
    DELETE(DeleteRequest.class, Committed.class, true),
    WRITE(WriteRequest.class, WriteReply.class, true),
    WRITE_PLAIN(PlainWriteRequest.class, WriteReply.class, true),
    COMMIT(CommitRequest.class, Committed.class, true),
    ABORT(AbortRequest.class, Nothing.class, true),
    NAMESPACES(PathRequest.class, NamesReply.class, false),
    NAMESPACE(PathRequest.class, PropertiesReply.class, false),
    TABLES(PathRequest.class, NamesReply.class, false),
    LOAD(LoadRequest.class, LoadReply.class, false),
    PROCEDURES(Nothing.class, ProceduresReply.class, false),
    CREATE_NAMESPACE(PropertiesRequest.class, Nothing.class, true),
    ALTER_NAMESPACE(PropertiesRequest.class, Nothing.class, true),
    DROP_NAMESPACE(DropNamespaceRequest.class, Nothing.class, true),
    CREATE(CreateRequest.class, LoadReply.class, true),
    STAGE(CreateRequest.class, LoadReply.class, true),
    PUBLISH(Staged.class, Nothing.class, true),
    DISCARD(Staged.class, Nothing.class, true),
    DROP(PathRequest.class, DroppedReply.class, true),
    RENAME(RenameRequest.class, Nothing.class, true),
    ALTER(AlterRequest.class, Nothing.class, true),
    CALL(CallRequest.class, CallReply.class, true);

    final Class<?> request;
    final Class<?> reply;
    final boolean changes;

    Operation(Class<?> request, Class<?> reply, boolean changes) {
      this.request = request;
      this.reply = reply;
      this.changes = changes;
    }

    String spelled() {
      return name().toLowerCase(java.util.Locale.ROOT);
    }
  }
}
