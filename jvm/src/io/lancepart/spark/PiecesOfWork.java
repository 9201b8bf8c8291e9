package io.lancepart.spark;

import io.lancepart.spark.Protocol.ReadPlan;
import io.lancepart.spark.Protocol.Work;
import io.lancepart.spark.Protocol.Worked;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Work of a statement that Spark's tasks do: a job of the thread that waits for the statement, so that it is shown in the UI,
 * belongs to the thread's job group and tags, and is cancelled with them or with the statement.
 */
final class PiecesOfWork {
  private static final StructType RESULTS = new StructType().add("results", DataTypes.BinaryType);
  private static final String DESCRIPTION = "spark.job.description";
  private static final String CANCELLED = "it was cancelled";

  private PiecesOfWork() {}

  /** Do it; a failure is reported to the request that handed it over, and work that was cancelled has no results. */
  static Worked run(Work work, Statements.Waiting statement) {
    var session = (SparkSession) SparkSession.active();
    SparkContext context = session.sparkContext();
    String tag = "lancepart-" + UUID.randomUUID();
    String before = context.getLocalProperty(DESCRIPTION);
    context.addJobTag(tag);
    context.setLocalProperty(DESCRIPTION, "lancepart: " + work.what());
    try {
      statement.cancelled.thenRun(() -> context.cancelJobsWithTag(tag));
      List<byte[]> results = Dataset.ofRows(session, SparkInternals.relation(new Pieces(work)))
          .collectAsList().stream().map(row -> row.<byte[]>getAs(0)).toList();
      return statement.cancelled.isDone() ? refused(work) : new Worked(work.id(), results, null);
    } catch (Throwable e) {
      context.cancelJobsWithTag(tag);
      if (e instanceof InterruptedException || e.getCause() instanceof InterruptedException) {
        Thread.currentThread().interrupt();
      }
      return statement.cancelled.isDone() ? refused(work) : new Worked(work.id(), List.of(), String.valueOf(e.getMessage()));
    } finally {
      context.removeJobTag(tag);
      context.setLocalProperty(DESCRIPTION, before);
    }
  }

  static Worked refused(Work work) {
    return new Worked(work.id(), List.of(), CANCELLED);
  }

  /** The work as a table that has a row for each task. */
  private record Pieces(Work work) implements SupportsRead {
    @Override
    public String name() {
      return work.what();
    }

    @Override
    @SuppressWarnings("deprecation")
    public StructType schema() {
      return RESULTS;
    }

    @Override
    public Set<TableCapability> capabilities() {
      return EnumSet.of(TableCapability.BATCH_READ);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      var planned = new PlannedRead(new ReadPlan(work.function(), work.tasks(), false), RESULTS);
      return () -> new ReadOnlyScan(this, work.what(), planned);
    }
  }
}
