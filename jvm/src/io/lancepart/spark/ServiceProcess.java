package io.lancepart.spark;

import com.fasterxml.jackson.databind.JsonNode;
import io.lancepart.spark.Protocol.Cancel;
import io.lancepart.spark.Protocol.Envelope;
import io.lancepart.spark.Protocol.Failure;
import io.lancepart.spark.Protocol.Hello;
import io.lancepart.spark.Protocol.Progress;
import io.lancepart.spark.Protocol.Reply;
import io.lancepart.spark.Protocol.Request;
import io.lancepart.spark.Protocol.Warned;
import io.lancepart.spark.Protocol.Work;
import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** One Python process that answers requests over its pipes; replies come in any order. */
final class ServiceProcess {
  private static final Logger LOG = LoggerFactory.getLogger(PlanningService.class);
  private static final long HELLO_SECONDS = 120;
  private static final long CANCEL_SECONDS = 60;
  private static final long KILL_SECONDS = 5;

  private final Process process;
  private final DataOutputStream requests;
  private final AtomicLong last = new AtomicLong();
  private final Map<Long, CompletableFuture<Envelope>> waiting = new ConcurrentHashMap<>();
  private final CompletableFuture<Hello> hello = new CompletableFuture<>();
  private volatile boolean ended;

  private ServiceProcess(Process process) {
    this.process = process;
    this.requests = new DataOutputStream(new BufferedOutputStream(process.getOutputStream()));
    run("lancepart-replies", () -> receive(new DataInputStream(new BufferedInputStream(process.getInputStream()))));
    run("lancepart-log", () -> log(process.getErrorStream()));
  }

  static ServiceProcess start(List<String> command, Map<String, String> environment) throws IOException {
    var builder = new ProcessBuilder(command);
    builder.environment().putAll(environment);
    var found = new ServiceProcess(builder.start());
    try {
      Hello hello = found.hello.get(HELLO_SECONDS, TimeUnit.SECONDS);
      if (hello.protocol() != Protocol.VERSION) {
        throw new IOException("it has lancepart " + hello.lancepart() + ", which speaks version " + hello.protocol()
            + " of the protocol, and the jar " + Protocol.VERSION + ": use the jar inside that lancepart");
      }
      return found;
    } catch (ExecutionException | TimeoutException e) {
      found.close();
      throw new IOException("it does not answer", e);
    } catch (InterruptedException e) {
      found.close();
      Thread.currentThread().interrupt();
      throw new CancellationException("interrupted");
    } catch (IOException e) {
      found.close();
      throw e;
    }
  }

  private static void run(String name, Runnable action) {
    var thread = new Thread(action, name);
    thread.setDaemon(true);
    thread.start();
  }

  boolean isAlive() {
    return !ended && process.isAlive();
  }

  Envelope request(String operation, JsonNode body, Map<String, String> options) throws NotSentException, EndedException {
    long id = last.incrementAndGet();
    var reply = expected(id);
    try (var statement = Statements.enter()) {
      send(new Request(id, operation, body, options));
      if (ended) {
        throw new EndedException();
      }
      while (true) {
        CompletableFuture.anyOf(reply, statement.cancelled).get();
        if (!reply.isDone()) {
          throw cancelled(id, operation);
        }
        if (!(reply.get() instanceof Work work)) {
          return reply.get();
        }
        reply = expected(id);
        send(PiecesOfWork.run(work, statement));
      }
    } catch (ExecutionException e) {
      throw new EndedException();
    } catch (InterruptedException e) {
      CancellationException error = cancelled(id, operation);
      Thread.currentThread().interrupt();
      throw error;
    } finally {
      waiting.remove(id);
    }
  }

  /** What the next message about a request completes; it replaces what the last one has completed. */
  private CompletableFuture<Envelope> expected(long id) {
    var next = new CompletableFuture<Envelope>();
    waiting.put(id, next);
    if (ended) {
      next.completeExceptionally(new EndedException());
    }
    return next;
  }

  /** Stop a statement at its next step, and wait until it has stopped; work that it still hands over is refused. */
  private CancellationException cancelled(long id, String operation) {
    String outcome;
    try {
      send(new Cancel(id));
      Envelope found = waiting.get(id).get(CANCEL_SECONDS, TimeUnit.SECONDS);
      while (found instanceof Work work) {
        CompletableFuture<Envelope> reply = expected(id);
        send(PiecesOfWork.refused(work));
        found = reply.get(CANCEL_SECONDS, TimeUnit.SECONDS);
      }
      outcome = found instanceof Failure failure ? failure.message() : "it was done already";
    } catch (TimeoutException e) {
      outcome = "it has not stopped yet";
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      outcome = "it is not known whether it took effect";
    } catch (ExecutionException | NotSentException e) {
      outcome = "it is not known whether it took effect";
    }
    return new CancellationException("'" + operation + "' was cancelled: " + outcome);
  }

  private void send(Envelope message) throws NotSentException {
    byte[] bytes;
    try {
      bytes = Protocol.JSON.writeValueAsBytes(Protocol.dump(message));
    } catch (IOException e) {
      throw new IllegalStateException("a message is not JSON", e);
    }
    synchronized (requests) {
      try {
        requests.writeInt(bytes.length);
        requests.write(bytes);
        requests.flush();
      } catch (IOException e) {
        ended = true;
        throw new NotSentException(e);
      }
    }
  }

  private void receive(DataInputStream replies) {
    try (replies) {
      while (true) {
        byte[] bytes = new byte[replies.readInt()];
        replies.readFully(bytes);
        take(Protocol.parse(Protocol.JSON.readTree(bytes)));
      }
    } catch (EOFException e) {
      LOG.debug("lancepart's planning service has ended");
    } catch (IOException | RuntimeException e) {
      if (ended) {
        LOG.debug("lancepart's planning service was closed");
      } else {
        LOG.warn("lancepart's planning service can't be understood: {}", e.getMessage());
      }
    } finally {
      ended = true;
      hello.completeExceptionally(new EndedException());
      waiting.values().forEach(each -> each.completeExceptionally(new EndedException()));
      process.destroy();
    }
  }

  private void take(Envelope message) {
    if (message instanceof Hello found) {
      hello.complete(found);
    } else if (message instanceof Progress step) {
      LOG.info("lancepart: {}: {} of {}", step.what(), step.done(), step.total());
    } else if (message instanceof Warned warned) {
      LOG.warn("lancepart: {}", warned.message());
    } else if (message instanceof Reply reply) {
      complete(reply.id(), reply);
    } else if (message instanceof Failure failure) {
      complete(failure.id(), failure);
    } else if (message instanceof Work work) {
      complete(work.id(), work);
    }
  }

  private void complete(long id, Envelope message) {
    var reply = waiting.get(id);
    if (reply != null) {
      reply.complete(message);
    }
  }

  private static void log(InputStream lines) {
    try (var reader = new BufferedReader(new InputStreamReader(lines, StandardCharsets.UTF_8))) {
      for (String line = reader.readLine(); line != null; line = reader.readLine()) {
        LOG.info("lancepart's planning service: {}", line);
      }
    } catch (IOException e) {
      LOG.debug("the log of lancepart's planning service has ended");
    }
  }

  /** The process is ended before its pipe is closed, since closing waits for the thread that is writing to it. */
  void close() {
    ended = true;
    process.destroy();
    process.onExit().orTimeout(KILL_SECONDS, TimeUnit.SECONDS).exceptionally(late -> process.destroyForcibly());
    run("lancepart-close", () -> {
      try {
        process.getOutputStream().close();
      } catch (IOException e) {
        LOG.debug("the pipe of lancepart's planning service was closed already");
      }
    });
  }

  /** A request that the process can't have read. */
  static final class NotSentException extends Exception {
    NotSentException(Throwable cause) {
      super(cause);
    }
  }

  /** The process has ended before it replied. */
  static final class EndedException extends Exception {}
}
