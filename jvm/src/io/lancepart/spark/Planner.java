package io.lancepart.spark;

import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The data source of Python's that the jar uses for streams and for its tunnel, and that users must not reach.
 *
 * <p>Python's planner is not among the data sources that Spark finds by itself: it is registered here, in the session that
 * needs it. Spark looks for a Java class of a name before it looks for a Python one, so that a user who names the planner
 * meets this class instead, which refuses everything.
 */
public final class Planner implements TableProvider, DataSourceRegister {
  private static final String NAME = "lancepart-planner";
  /** The pickle of a class by its name, as Spark wants a data source: protocol 0, GLOBAL and STOP. */
  private static final byte[] SOURCE =
      "cpyspark_lancepart.planner\nPlanner\n.".getBytes(StandardCharsets.US_ASCII);

  /** One for each context: to make one, Spark starts a Python process that tells its version. */
  private static final Map<SparkContext, UserDefinedPythonDataSource> SOURCES =
      Collections.synchronizedMap(new WeakHashMap<>());

  /** The data source from which Spark's readers and writers take the interpreter of their workers. */
  static UserDefinedPythonDataSource source() {
    return SOURCES.computeIfAbsent(SparkSession.active().sparkContext(), context -> SparkInternals.source(SOURCE));
  }

  /** Spark's wrapper for one conversation with the planner. */
  static PythonDataSourceV2 provider() {
    var known = ((SparkSession) org.apache.spark.sql.SparkSession.active()).sessionState().dataSourceManager();
    if (!known.dataSourceExists(NAME)) {
      known.registerDataSource(NAME, source());
    }
    var provider = new PythonDataSourceV2();
    provider.setShortName(NAME);
    return provider;
  }

  @Override
  public String shortName() {
    return NAME;
  }

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    throw refused();
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> options) {
    throw refused();
  }

  @Override
  public boolean supportsExternalMetadata() {
    return true;
  }

  private static UnsupportedOperationException refused() {
    return new UnsupportedOperationException(NAME + " is lancepart's own: use the format " + LancepartSource.NAME);
  }
}
