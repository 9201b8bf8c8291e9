package io.lancepart.spark;

import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsCatalogOptions;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** {@code format("lancepart")}: a table by its path, given a catalog because only a catalog's functions explain transforms. */
public final class LancepartSource implements SupportsCatalogOptions, DataSourceRegister {
  static final String NAME = "lancepart";
  private static final String CATALOG = "spark.sql.catalog." + NAME;

  @Override
  public String shortName() {
    return NAME;
  }

  @Override
  public Identifier extractIdentifier(CaseInsensitiveStringMap options) {
    var session = (org.apache.spark.sql.classic.SparkSession) SparkSession.active();
    CatalogPlugin catalog = SparkInternals.catalog(session, extractCatalog(options));
    PathIdentifier id = PathIdentifier.of(options);
    return catalog instanceof PathCatalog paths ? paths.writing(id) : id;
  }

  @Override
  public String extractCatalog(CaseInsensitiveStringMap options) {
    var conf = SparkSession.active().conf();
    if (!conf.contains(CATALOG)) {
      conf.set(CATALOG, PathCatalog.class.getName());
    }
    return NAME;
  }

  @Override
  @SuppressWarnings("deprecation")
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return getTable(null, new Transform[0], options.asCaseSensitiveMap()).schema();
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> options) {
    return PathCatalog.find(PathIdentifier.of(new CaseInsensitiveStringMap(options)));
  }
}
