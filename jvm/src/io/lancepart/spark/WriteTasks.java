package io.lancepart.spark;

import java.time.Duration;
import java.util.HashSet;
import java.util.Properties;
import java.util.Set;
import java.util.UUID;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;
import org.apache.spark.sql.SparkSession;

/**
 * The tasks of one write. When one fails, Spark tells the driver at once and stops the others later; only when these are
 * over is it known which files they wrote. Spark reports the start of a task before the end of its job, so that no task is
 * overlooked once the job's end was reported.
 */
final class WriteTasks extends SparkListener {
  private static final String PROPERTY = "spark.lancepart.write";
  private static final Duration PATIENCE = Duration.ofSeconds(20);
  private static final Duration PATIENCE_FOR_START = Duration.ofSeconds(2);

  private final String id = UUID.randomUUID().toString();
  private final SparkContext context = SparkSession.active().sparkContext();
  private final Set<Integer> jobs = new HashSet<>();
  private final Set<Integer> stages = new HashSet<>();
  private final Set<Long> running = new HashSet<>();
  private boolean begun;

  /** From here on jobs of this thread belong to the write. */
  void begin() {
    context.addSparkListener(this);
    context.setLocalProperty(PROPERTY, id);
  }

  void end() {
    context.setLocalProperty(PROPERTY, null);
    context.removeSparkListener(this);
  }

  /**
   * Waits until no task runs, or so long that a task which Spark can't stop is left to itself. A write that failed before its
   * job was submitted has no tasks; since reports come late, that is believed after a while only.
   */
  synchronized void awaitStopped() {
    long start = System.nanoTime();
    try {
      for (long left = 1; left > 0 && !(begun && jobs.isEmpty() && running.isEmpty()); ) {
        Duration patience = begun ? PATIENCE : PATIENCE_FOR_START;
        left = patience.minusNanos(System.nanoTime() - start).toMillis();
        wait(Math.max(left, 1));
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  @Override
  public synchronized void onJobStart(SparkListenerJobStart event) {
    if (isOurs(event.properties())) {
      begun = true;
      jobs.add(event.jobId());
    }
  }

  @Override
  public synchronized void onStageSubmitted(SparkListenerStageSubmitted event) {
    if (isOurs(event.properties())) {
      stages.add(event.stageInfo().stageId());
    }
  }

  @Override
  public synchronized void onTaskStart(SparkListenerTaskStart event) {
    if (stages.contains(event.stageId())) {
      running.add(event.taskInfo().taskId());
    }
  }

  @Override
  public synchronized void onTaskEnd(SparkListenerTaskEnd event) {
    running.remove(event.taskInfo().taskId());
    notifyAll();
  }

  @Override
  public synchronized void onJobEnd(SparkListenerJobEnd event) {
    jobs.remove(event.jobId());
    notifyAll();
  }

  private boolean isOurs(Properties properties) {
    return properties != null && id.equals(properties.getProperty(PROPERTY));
  }
}
