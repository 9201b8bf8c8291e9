package io.lancepart.spark;

import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import org.apache.spark.sql.SparkSession;

/**
 * The requests that wait for a planning service, with the job group and the tags of their threads. Spark tells nobody that
 * it cancels the jobs of a group, and a statement in the service has none: Python's side calls this class instead.
 */
public final class Statements {
  private static final String GROUP = "spark.jobGroup.id";
  private static final String TAGS = "spark.job.tags";
  private static final String SESSION_TAG = "spark-session-[0-9a-f-]{36}-thread-[0-9a-f-]{36}-";
  private static final Set<Waiting> ALL = ConcurrentHashMap.newKeySet();

  private Statements() {}

  /** Cancel every statement of this JVM; how many there were. */
  public static int cancelAll() {
    return cancel(each -> true);
  }

  /** Cancel the statements of a job group. */
  public static int cancelGroup(String group) {
    return cancel(each -> group.equals(each.group));
  }

  /** Cancel the statements with a tag, as it was given to the context or to a session, which puts ids before it. */
  public static int cancelTag(String tag) {
    Pattern spelled = Pattern.compile("(" + SESSION_TAG + ")?" + Pattern.quote(tag));
    return cancel(each -> Arrays.stream(each.tags.split(",")).anyMatch(own -> spelled.matcher(own).matches()));
  }

  private static int cancel(Predicate<Waiting> which) {
    return (int) ALL.stream().filter(which).filter(each -> each.cancelled.complete(null)).count();
  }

  /** Enter a request of this thread. */
  static Waiting enter() {
    var context = SparkSession.active().sparkContext();
    String group = context.getLocalProperty(GROUP);
    String tags = context.getLocalProperty(TAGS);
    var found = new Waiting(group, tags == null ? "" : tags);
    ALL.add(found);
    return found;
  }

  /** A request that waits for its reply. */
  static final class Waiting implements AutoCloseable {
    final CompletableFuture<Void> cancelled = new CompletableFuture<>();
    private final String group;
    private final String tags;

    private Waiting(String group, String tags) {
      this.group = group;
      this.tags = tags;
    }

    @Override
    public void close() {
      ALL.remove(this);
    }
  }
}
