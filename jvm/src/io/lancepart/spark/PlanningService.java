package io.lancepart.spark;

import com.fasterxml.jackson.databind.JsonNode;
import io.lancepart.spark.Protocol.Envelope;
import io.lancepart.spark.Protocol.Operation;
import io.lancepart.spark.ServiceProcess.EndedException;
import io.lancepart.spark.ServiceProcess.NotSentException;
import java.io.IOException;
import java.lang.ref.Cleaner;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.sql.classic.SparkSession;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The planning service of one session: a Python process beside the driver that is started when it is first needed, again
 * after it died, and stopped with the session, the context or the JVM. It holds nothing of its session, so that one which
 * nobody uses any more can go, and its process with it.
 */
final class PlanningService implements Channel {
  private static final Logger LOG = LoggerFactory.getLogger(PlanningService.class);
  private static final Map<SparkSession, PlanningService> ALL = Collections.synchronizedMap(new WeakHashMap<>());
  private static final Cleaner CLEANER = Cleaner.create();

  private final List<List<String>> commands;
  private final Map<String, String> environment;
  private ServiceProcess process;
  private volatile boolean closed;

  private PlanningService(List<List<String>> commands, Map<String, String> environment) {
    this.commands = commands;
    this.environment = environment;
  }

  /** The service of a session, or null where it can't be started. */
  static PlanningService of(SparkSession session) {
    PlanningService found;
    synchronized (ALL) {
      found = ALL.get(session);
      if (found == null || found.isClosed()) {
        if (ALL.isEmpty()) {
          session.sparkContext().addSparkListener(new StopWithContext());
        }
        found = new PlanningService(SparkInternals.pythons(session), SparkInternals.pythonEnvironment());
        ALL.put(session, found);
        PlanningService own = found;
        CLEANER.register(session, own::close);
      }
    }
    return found.isUsable() ? found : null;
  }

  private boolean isClosed() {
    return closed;
  }

  /** Start the process if there is none; one that can't be started is not tried again. */
  private synchronized boolean isUsable() {
    if (process == null && !commands.isEmpty()) {
      process = started();
      if (process == null) {
        commands.clear();
      }
    }
    return process != null;
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
   * Ask, and ask a new process if the one that was asked has died; but never twice for what may have changed something.
   */
  @Override
  public Envelope ask(Operation operation, JsonNode body, Map<String, String> options) {
    for (int attempt = 0; ; attempt++) {
      try {
        return process().ask(operation.spelled(), body, options);
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

  private synchronized void close() {
    closed = true;
    if (process != null) {
      process.close();
    }
  }

  private static void closeAll() {
    synchronized (ALL) {
      ALL.values().forEach(PlanningService::close);
      ALL.clear();
    }
  }

  /** Ends all services with the context; a JVM has one at a time. */
  private static final class StopWithContext extends SparkListener {
    @Override
    public void onApplicationEnd(SparkListenerApplicationEnd end) {
      closeAll();
    }
  }
}
