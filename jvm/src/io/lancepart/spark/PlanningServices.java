package io.lancepart.spark;

import java.lang.ref.Cleaner;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SessionState;

/**
 * The planning services of one Spark context: one a session. Spark clones a session for each DataFrame that is cached and
 * for each streaming query; a clone belongs to the same user, and uses the service of the session that it was made of.
 * Processes that are not in use are kept up to a number; beyond it the one that was used longest ago is ended, and started
 * again when its session needs it.
 */
final class PlanningServices extends SparkListener {
  private static final String MAX_IDLE = "spark.lancepart.service.maxIdle";
  private static final int DEFAULT_MAX_IDLE = 16;
  private static final Map<SparkContext, PlanningServices> ALL = new WeakHashMap<>();
  private static final Cleaner CLEANER = Cleaner.create();

  private final Map<SessionState, PlanningService> services = new WeakHashMap<>();
  private final int maxIdle;

  private PlanningServices(int maxIdle) {
    this.maxIdle = maxIdle;
  }

  /** The service of a session, or null where it can't be started. */
  static PlanningService of(SparkSession session) {
    PlanningServices all = of(session.sparkContext());
    PlanningService found = all.find(session);
    if (!found.isUsable()) {
      return null;
    }
    all.endIdle(found);
    return found;
  }

  private static PlanningServices of(SparkContext context) {
    synchronized (ALL) {
      PlanningServices found = ALL.get(context);
      if (found == null) {
        found = new PlanningServices(context.conf().getInt(MAX_IDLE, DEFAULT_MAX_IDLE));
        context.addSparkListener(found);
        ALL.put(context, found);
      }
      return found;
    }
  }

  /** Maps are weak and services hold nothing of their session: one that nobody uses any more goes, and its process too. */
  private synchronized PlanningService find(SparkSession session) {
    SessionState state = session.sessionState();
    PlanningService found = services.get(state);
    if (found == null) {
      SessionState parent = SparkInternals.parent(session);
      SessionState owner = parent == null ? state : parent;
      found = services.get(owner);
      if (found == null) {
        found = new PlanningService(SparkInternals.pythons(session), SparkInternals.pythonEnvironment());
        services.put(owner, found);
        CLEANER.register(owner, found::close);
      }
      services.put(state, found);
    }
    return found;
  }

  private synchronized void endIdle(PlanningService inUse) {
    if (services.size() <= maxIdle) {
      return;
    }
    Set<PlanningService> all = new HashSet<>(services.values());
    List<PlanningService> idle = all.stream()
        .filter(each -> each != inUse && each.isIdle())
        .sorted(Comparator.comparingLong(PlanningService::lastUsed))
        .toList();
    idle.stream().limit(Math.max(0, idle.size() - maxIdle)).forEach(PlanningService::endIfIdle);
  }

  @Override
  public synchronized void onApplicationEnd(SparkListenerApplicationEnd end) {
    services.values().forEach(PlanningService::close);
  }
}
