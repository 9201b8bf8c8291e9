package io.lancepart.spark;

import com.fasterxml.jackson.databind.JsonNode;
import io.lancepart.spark.Protocol.Envelope;
import io.lancepart.spark.Protocol.Operation;
import io.lancepart.spark.ServiceProcess.EndedException;
import io.lancepart.spark.ServiceProcess.NotSentException;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The planning service of one session: a Python process beside the driver that is started when it is first needed, again
 * after it died or was ended because it was idle, and stopped with the session, the context or the JVM.
 */
final class PlanningService implements Channel {
  private static final Logger LOG = LoggerFactory.getLogger(PlanningService.class);

  private final List<List<String>> commands;
  private final Map<String, String> environment;
  private final AtomicInteger uses = new AtomicInteger();
  private volatile long lastUsed = System.nanoTime();
  private volatile ServiceProcess process;
  private volatile boolean closed;

  PlanningService(List<List<String>> commands, Map<String, String> environment) {
    this.commands = commands;
    this.environment = environment;
  }

  /** Start the process if there is none; one that can't be started is not tried again. */
  boolean isUsable() {
    if (closed) {
      return true;
    }
    uses.incrementAndGet();
    try {
      return isStarted();
    } finally {
      lastUsed = System.nanoTime();
      uses.decrementAndGet();
    }
  }

  private synchronized boolean isStarted() {
    if (process == null && !commands.isEmpty()) {
      process = started();
      if (process == null) {
        commands.clear();
      }
    }
    return process != null;
  }

  boolean isIdle() {
    return process != null && uses.get() == 0;
  }

  long lastUsed() {
    return lastUsed;
  }

  /** End the process unless a request is under way; the next one starts another. */
  synchronized void endIfIdle() {
    if (isIdle()) {
      process.close();
      process = null;
    }
  }

  private ServiceProcess started() {
    for (List<String> command : commands) {
      try {
        ServiceProcess found = ServiceProcess.start(command, environment);
        commands.retainAll(List.of(command));
        return found;
      } catch (IOException e) {
        LOG.info("lancepart's planning service does not start with {}: {}", command.get(0), e.getMessage());
      }
    }
    LOG.warn("lancepart's planning service can't be started: Spark's Python workers plan instead, which is slower");
    return null;
  }

  private synchronized ServiceProcess process() throws IOException {
    if (closed) {
      throw new IOException("the session has ended");
    }
    if (process == null || !process.isAlive()) {
      process = ServiceProcess.start(commands.get(0), environment);
    }
    return process;
  }

  /**
   * Send a request, and send it to a new process if the first one died; but never twice what may have changed something.
   */
  @Override
  public Envelope request(Operation operation, JsonNode body, Map<String, String> options) {
    uses.incrementAndGet();
    try {
      return answered(operation, body, options);
    } finally {
      lastUsed = System.nanoTime();
      uses.decrementAndGet();
    }
  }

  private Envelope answered(Operation operation, JsonNode body, Map<String, String> options) {
    for (int attempt = 0; ; attempt++) {
      try {
        return process().request(operation.spelled(), body, options);
      } catch (NotSentException e) {
        if (attempt > 0) {
          throw new IllegalStateException("lancepart's planning service does not take requests", e);
        }
      } catch (EndedException e) {
        if (operation.changes) {
          throw new IllegalStateException(
              "lancepart's planning service ended while it ran '" + operation.spelled()
                  + "': it is not known whether that took effect. Look at the table before you run it again", e);
        }
        if (attempt > 0) {
          throw new IllegalStateException("lancepart's planning service ended twice during one request", e);
        }
      } catch (IOException e) {
        throw new IllegalStateException("lancepart's planning service can't be started: " + e.getMessage(), e);
      }
    }
  }

  synchronized void close() {
    closed = true;
    if (process != null) {
      process.close();
    }
  }
}
