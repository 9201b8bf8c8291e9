package io.lancepart.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.lancepart.spark.Protocol.Failure;
import io.lancepart.spark.Protocol.Operation;
import io.lancepart.spark.Protocol.Reply;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** The jar's requests to Python, as messages: through the session's planning service or, where there is none, a tunnel. */
final class Python {
  static final ObjectMapper JSON = Protocol.JSON;
  private static final int UNSUPPORTED = 0;

  private Python() {}

  /** Send a request about the table that the options name; an error of Python's is thrown as one of Spark's kinds. */
  static <T> T request(Map<String, String> options, Operation operation, Object request, Class<T> reply) {
    try {
      return requestOrRefusal(options, operation, request, reply);
    } catch (Refused e) {
      throw e.shown();
    }
  }

  /** The same for callers that handle refusals themselves. */
  static <T> T requestOrRefusal(Map<String, String> options, Operation operation, Object request, Class<T> reply)
      throws Refused {
    Map<String, String> checked = Options.checked(options, operation == Operation.HANDED_OVER);
    JsonNode body = Protocol.JSON.valueToTree(request);
    var found = Channel.of((org.apache.spark.sql.classic.SparkSession) SparkSession.active())
        .request(operation, body, checked);
    if (found instanceof Failure failure) {
      throw new Refused(failure);
    }
    return Protocol.read(((Reply) found).body(), reply);
  }

  static StructType schema(JsonNode schema) {
    return (StructType) DataType.fromJson(schema.toString());
  }

  static JsonNode json(StructType schema) {
    try {
      return JSON.readTree(schema.json());
    } catch (com.fasterxml.jackson.core.JsonProcessingException e) {
      throw new IllegalStateException("a schema is not JSON", e);
    }
  }

  /** Spark's exceptions are checked ones that not all of its interfaces declare. */
  @SuppressWarnings("unchecked")
  static <E extends Exception> RuntimeException unchecked(Exception exception) throws E {
    throw (E) exception;
  }

  /** A request that Python refused. */
  static final class Refused extends Exception {
    final transient Failure failure;

    Refused(Failure failure) {
      super(failure.message());
      this.failure = failure;
    }

    /** The error as one of the kinds that PySpark shows without a stack trace of Java's. */
    RuntimeException shown() {
      String text = failure.error() + ": " + failure.message();
      return failure.code() == UNSUPPORTED
          ? new UnsupportedOperationException(text)
          : new IllegalArgumentException(text);
    }
  }

}
