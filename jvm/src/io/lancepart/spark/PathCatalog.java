package io.lancepart.spark;

import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Tables by their path and the partition functions: {@code SELECT lancepart.bucket(16, id) FROM lancepart.`/a/path`}. */
public final class PathCatalog implements StagingTableCatalog, PartitionFunctions {
  private String name;
  private Map<String, String> options;

  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
    this.options = options.asCaseSensitiveMap();
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public Table loadTable(Identifier id) throws NoSuchTableException {
    if (id instanceof PathIdentifier path) {
      return find(path);
    }
    if (!isPath(id)) {
      throw new NoSuchTableException(id);
    }
    return PartitionedTable.load(PathIdentifier.of(id.name(), options));
  }

  /** The table at a path; one that is not there may be made by a write that says how it is partitioned. */
  static Table find(PathIdentifier path) {
    if (SideTable.isPlanned(path)) {
      return SideTable.planned(path);
    }
    boolean mayBeMade = new CaseInsensitiveStringMap(path.options()).containsKey("partition_by");
    return mayBeMade && !PartitionedTable.exists(path)
        ? new NewTable(path, new StructType(), new Transform[0])
        : PartitionedTable.load(path);
  }

  @Override
  public boolean tableExists(Identifier id) {
    return isPath(id) && PartitionedTable.exists(path(id));
  }

  @Override
  public StagedTable stageCreate(Identifier id, TableInfo info) throws TableAlreadyExistsException {
    if (!isPath(id)) {
      throw refused("made");
    }
    if (PartitionedTable.exists(path(id))) {
      throw new TableAlreadyExistsException(id);
    }
    return new NewTable(path(id), info.schema(), info.partitions());
  }

  private static boolean isPath(Identifier id) {
    return id instanceof PathIdentifier || (id.namespace().length == 0 && id.name().contains("/"));
  }

  private PathIdentifier path(Identifier id) {
    return id instanceof PathIdentifier path ? path : PathIdentifier.last(id.name(), options);
  }

  @Override
  public Identifier[] listTables(String[] namespace) {
    return new Identifier[0];
  }

  @Override
  public Table createTable(Identifier id, StructType schema, Transform[] by, Map<String, String> properties) {
    throw refused("made");
  }

  @Override
  public Table alterTable(Identifier id, TableChange... changes) {
    throw refused("changed");
  }

  @Override
  public boolean dropTable(Identifier id) {
    throw refused("dropped");
  }

  @Override
  public void renameTable(Identifier from, Identifier to) {
    throw refused("renamed");
  }

  private static UnsupportedOperationException refused(String verb) {
    return new UnsupportedOperationException("a table that is known by its path can't be " + verb + " in SQL");
  }
}
