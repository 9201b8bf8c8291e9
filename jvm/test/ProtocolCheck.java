package io.lancepart.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lancepart.spark.Protocol.Envelope;
import io.lancepart.spark.Protocol.Operation;
import io.lancepart.spark.Protocol.Reply;
import io.lancepart.spark.Protocol.Request;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;

/** Reads golden messages, each through the class of its body, and prints them as the jar writes them, one a line. */
final class ProtocolCheck {
  private ProtocolCheck() {}

  public static void main(String[] files) throws Exception {
    for (String file : files) {
      JsonNode golden = Protocol.JSON.readTree(Files.readString(Path.of(file)));
      System.out.println(again(golden, Path.of(file).getFileName().toString()));
    }
    ObjectNode changing = Protocol.JSON.createObjectNode();
    Arrays.stream(Operation.values()).forEach(each -> changing.put(each.spelled(), each.changes));
    System.out.println(changing);
    System.out.println(Protocol.VERSION);
  }

  private static JsonNode again(JsonNode golden, String name) {
    Envelope message = Protocol.parse(golden);
    ObjectNode written = Protocol.dump(message);
    if (message instanceof Request request) {
      written.set("body", body(request.body(), operation(request.op()).request));
    } else if (message instanceof Reply reply) {
      String op = name.replaceAll("reply-|\\.json", "");
      written.set("body", body(reply.body(), operation(op).reply));
    }
    return written;
  }

  private static Operation operation(String op) {
    return Operation.valueOf(op.toUpperCase(Locale.ROOT));
  }

  private static JsonNode body(JsonNode body, Class<?> type) {
    return Protocol.JSON.valueToTree(Protocol.read(body, type));
  }
}
