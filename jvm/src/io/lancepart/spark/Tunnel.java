package io.lancepart.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import io.lancepart.spark.Protocol.Envelope;
import io.lancepart.spark.Protocol.Operation;
import io.lancepart.spark.Protocol.Request;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Messages where no child process may be started: Spark's own Python workers infer the schema of a data source, the request
 * is one of its options, and the reply is on its only column. There is no progress and no cancelling here.
 */
final class Tunnel implements Channel {
  static final Tunnel INSTANCE = new Tunnel();
  private static final String REQUEST = "lancepart.request";
  private static final String REPLY = "lancepart.reply";

  private Tunnel() {}

  @Override
  public Envelope request(Operation operation, JsonNode body, Map<String, String> options) {
    String request = Protocol.dump(new Request(0, operation.spelled(), body, new HashMap<>(options))).toString();
    var carrying = new CaseInsensitiveStringMap(Map.of(REQUEST, request));
    String reply = Planner.provider().inferSchema(carrying).fields()[0].metadata().getString(REPLY);
    try {
      return Protocol.parse(Protocol.JSON.readTree(reply));
    } catch (JsonProcessingException e) {
      throw new IllegalStateException("the reply of lancepart's Python side is not JSON", e);
    }
  }
}
