package io.lancepart.spark;

import java.util.List;
import org.apache.spark.sql.catalyst.analysis.NamedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.jdk.javaapi.CollectionConverters;

/** Whose table a statement names, before Spark has looked it up. */
final class Targets {
  private Targets() {}

  static boolean isOurs(SparkSession session, NamedRelation target) {
    if (target instanceof DataSourceV2Relation found) {
      return found.table() instanceof PartitionedTable;
    }
    if (!(target instanceof UnresolvedRelation unresolved)) {
      return false;
    }
    return isOurs(session, CollectionConverters.asJava(unresolved.multipartIdentifier()));
  }

  static boolean isOurs(SparkSession session, List<String> parts) {
    boolean hasCatalog = parts.size() > 1 && session.conf().contains("spark.sql.catalog." + parts.get(0));
    String name = hasCatalog ? parts.get(0) : session.catalog().currentCatalog();
    CatalogPlugin catalog = SparkInternals.catalog(session, name);
    return catalog instanceof LanceCatalog || catalog instanceof PathCatalog;
  }
}
