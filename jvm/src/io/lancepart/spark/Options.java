package io.lancepart.spark;

import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/** Options by names whose case does not matter, and what users may not say in them. */
final class Options {
  static final String PLAN = "lancepart.plan";
  static final String COLUMNS = "lancepart.columns";
  /** The directory of a plain Lance table in its warehouse, and the warehouse: said by the catalog alone. */
  static final String PLAIN = "lancepart.plain";
  static final String PLAIN_ROOT = "lancepart.plain.root";
  /** The target of a MERGE that only inserts; it never reaches Python. */
  static final String INSERTING = "lancepart.inserting";
  /** Which snapshot is read, as Spark itself understands it and has looked it up. */
  private static final Set<String> TIME_TRAVEL = Set.of("versionasof", "timestampasof");
  private static final String OWN = "lancepart.";
  private static final Set<String> PLANNED = Set.of(PLAN, COLUMNS, "lancepart.secrets");

  private static final Set<String> LOCATED_BY = Set.of("path", PLAIN, PLAIN_ROOT);

  private Options() {}

  static Map<String, String> of(Map<String, String> given) {
    Map<String, String> all = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    all.putAll(given);
    return all;
  }

  /** A plan that a user of Python made there. */
  static boolean isPlan(Map<String, String> given) {
    return of(given).containsKey(PLAN);
  }

  /** Refuses what only the jar itself says to Python, however it is spelled; a plan only where one is expected. */
  static Map<String, String> checked(Map<String, String> given, boolean planned) {
    Map<String, String> all = of(given);
    for (String key : all.keySet()) {
      String name = key.toLowerCase(Locale.ROOT);
      boolean allowed = LOCATED_BY.contains(name) || (planned && PLANNED.contains(name));
      if (name.startsWith(OWN) && !allowed) {
        throw new IllegalArgumentException(
            "option '" + key + "': names that begin with '" + OWN + "' are lancepart's own; leave it out");
      }
    }
    return all;
  }

  /**
   * A table's own options and those of a statement. Where a table is and what opens it is the table's own affair: with a
   * catalog's credentials a statement must not go elsewhere.
   */
  static Map<String, String> merged(Map<String, String> own, Map<String, String> more) {
    Map<String, String> all = of(own);
    of(more).forEach((key, value) -> {
      if (isPlace(key) && !value.equals(all.get(key))) {
        throw new IllegalArgumentException(
            "option '" + key + "' can't be set in a statement: it belongs to the table or to its catalog");
      }
      all.put(key, value);
    });
    all.remove(INSERTING);
    return all;
  }

  /**
   * The same for what a statement reads or writes of a table, without what Spark has seen to when it loaded the table: a
   * moment is one of the session's time zone to Spark.
   */
  static Map<String, String> stated(Map<String, String> own, Map<String, String> more) {
    Map<String, String> known = of(own);
    Map<String, String> rest = of(more);
    rest.keySet().removeIf(key -> TIME_TRAVEL.contains(key.toLowerCase(Locale.ROOT)) && !known.containsKey(key));
    return merged(own, rest);
  }

  private static boolean isPlace(String key) {
    String name = key.toLowerCase(Locale.ROOT);
    return LOCATED_BY.contains(name) || name.startsWith("storage.");
  }
}
