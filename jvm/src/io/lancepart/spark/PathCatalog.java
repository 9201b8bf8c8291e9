package io.lancepart.spark;

import io.lancepart.spark.Protocol.EvolveRequest;
import io.lancepart.spark.Protocol.Nothing;
import io.lancepart.spark.Protocol.Operation;
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
  private final ThreadLocal<PathIdentifier> written = new ThreadLocal<>();
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

  /** The catalog's options, with a version to read unless that is null. */
  Map<String, String> options(String version) {
    Map<String, String> all = Options.of(options);
    if (version != null) {
      all.put("version", version);
    }
    return all;
  }

  @Override
  public Table loadTable(Identifier id) throws NoSuchTableException {
    if (id instanceof PathIdentifier path) {
      written.remove();
      return find(path);
    }
    if (!isPath(id)) {
      throw new NoSuchTableException(id);
    }
    return PartitionedTable.load(PathIdentifier.of(id.name(), options));
  }

  /** The table at a path; one that is not there may be made by a write that says how it is partitioned. */
  static Table find(PathIdentifier path) {
    if (Options.isPlan(path.options())) {
      return ReadOnlyTable.planned(path);
    }
    boolean mayBeMade = path.options().containsKey("partition_by");
    return mayBeMade && !PartitionedTable.exists(path)
        ? new NewTable(path, new StructType(), new Transform[0])
        : PartitionedTable.load(path);
  }

  @Override
  public boolean tableExists(Identifier id) {
    return isNamed(id) && PartitionedTable.exists(path(id));
  }

  @Override
  public StagedTable stageCreate(Identifier id, TableInfo info) throws TableAlreadyExistsException {
    if (!isNamed(id)) {
      throw refused("made");
    }
    if (PartitionedTable.exists(path(id))) {
      throw new TableAlreadyExistsException(id);
    }
    PathIdentifier path = path(id);
    written.remove();
    return new NewTable(path, info.schema(), info.partitions());
  }

  /**
   * Keeps the options of a write that this thread is about to run: where a write makes a table, Spark passes on nothing but
   * the table's name. A catalog belongs to one session, so that no other one meets them.
   */
  PathIdentifier writing(PathIdentifier id) {
    written.set(id);
    return id;
  }

  private static boolean isPath(Identifier id) {
    return id instanceof PathIdentifier || (id.namespace().length == 0 && id.name().contains("/"));
  }

  /** Whether a name is a path, also one without a slash if this thread is about to write to it. */
  private boolean isNamed(Identifier id) {
    return isPath(id) || (id.namespace().length == 0 && kept(id) != null);
  }

  private PathIdentifier path(Identifier id) {
    PathIdentifier kept = kept(id);
    return kept != null ? kept : PathIdentifier.of(id.name(), options);
  }

  private PathIdentifier kept(Identifier id) {
    PathIdentifier kept = id instanceof PathIdentifier path ? path : written.get();
    return kept != null && kept.name().equals(id.name()) ? kept : null;
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
  public Table alterTable(Identifier id, TableChange... changes) throws NoSuchTableException {
    if (!isPath(id)) {
      throw refused("changed");
    }
    Python.request(path(id).options(), Operation.EVOLVE, new EvolveRequest(Changes.json(changes)), Nothing.class);
    return loadTable(id);
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
