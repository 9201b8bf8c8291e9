package io.lancepart.spark;

import com.fasterxml.jackson.databind.JsonNode;
import io.lancepart.spark.Protocol.Envelope;
import io.lancepart.spark.Protocol.Operation;
import java.util.Map;
import org.apache.spark.sql.classic.SparkSession;

/** A way for messages to Python and back: the reply or the failure of each request. */
interface Channel {
  String SETTING = "spark.lancepart.service";

  Envelope request(Operation operation, JsonNode body, Map<String, String> options);

  /** The planning service of a session, unless a setting or its start-up forbids child processes. */
  static Channel of(SparkSession session) {
    boolean allowed = session.sparkContext().conf().getBoolean(SETTING, true)
        && !"false".equalsIgnoreCase(session.conf().get(SETTING, "true"));
    PlanningService service = allowed ? PlanningServices.of(session) : null;
    return service == null ? Tunnel.INSTANCE : service;
  }
}
