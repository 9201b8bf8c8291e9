package io.lancepart.spark;

import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import scala.jdk.javaapi.CollectionConverters;

/** Tables by a name in a text, or by a path, as the current session would find them. */
final class TableNames {
  private TableNames() {}

  /** A table at a version, a tag or, where that is null, its newest snapshot of now. */
  static PartitionedTable find(String text, String version) {
    var session = (SparkSession) org.apache.spark.sql.SparkSession.active();
    Table found = text.contains("/") ? byPath(session, text, version) : byName(session, text, version);
    if (found instanceof PartitionedTable table) {
      return table;
    }
    throw new UnsupportedOperationException(found.name() + " is not a table of lancepart: only those can be searched");
  }

  private static Table byPath(SparkSession session, String path, String version) {
    CatalogPlugin catalog = SparkInternals.catalog(session, LancepartSource.NAME);
    Map<String, String> options = catalog instanceof PathCatalog paths ? paths.options(version) : Map.of();
    return PartitionedTable.load(PathIdentifier.of(path, options));
  }

  private static Table byName(SparkSession session, String text, String version) {
    ParserInterface parser = session.sessionState().sqlParser();
    List<String> parts = parsed(parser, text);
    boolean hasCatalog = parts.size() > 1 && session.conf().contains("spark.sql.catalog." + parts.get(0));
    String catalog = hasCatalog ? parts.get(0) : session.catalog().currentCatalog();
    List<String> path = hasCatalog ? parts.subList(1, parts.size()) : parts;
    List<String> namespace = path.subList(0, path.size() - 1);
    if (!hasCatalog && path.size() == 1) {
      namespace = parsed(parser, session.catalog().currentDatabase());
    }
    Identifier id = Identifier.of(namespace.toArray(String[]::new), path.get(path.size() - 1));
    if (!(SparkInternals.catalog(session, catalog) instanceof LanceCatalog tables)) {
      throw new IllegalArgumentException(
          "'" + text + "' is in the catalog " + catalog + ", which has no tables of lancepart: name a table of one that has, "
              + "as in 'lance.ns.notes', or a path");
    }
    return version == null ? tables.loadTable(id) : tables.loadTable(id, version);
  }

  private static List<String> parsed(ParserInterface parser, String text) {
    return text.isEmpty() ? List.of() : CollectionConverters.asJava(SparkInternals.identifier(parser, text));
  }
}
