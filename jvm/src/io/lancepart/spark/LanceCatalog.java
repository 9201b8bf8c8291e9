package io.lancepart.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lancepart.spark.Protocol.AlterRequest;
import io.lancepart.spark.Protocol.CallReply;
import io.lancepart.spark.Protocol.CallRequest;
import io.lancepart.spark.Protocol.CreateRequest;
import io.lancepart.spark.Protocol.DropNamespaceRequest;
import io.lancepart.spark.Protocol.DroppedReply;
import io.lancepart.spark.Protocol.Failure;
import io.lancepart.spark.Protocol.LoadReply;
import io.lancepart.spark.Protocol.LoadRequest;
import io.lancepart.spark.Protocol.NamesReply;
import io.lancepart.spark.Protocol.Nothing;
import io.lancepart.spark.Protocol.Operation;
import io.lancepart.spark.Protocol.PathRequest;
import io.lancepart.spark.Protocol.ProceduresReply;
import io.lancepart.spark.Protocol.PropertiesReply;
import io.lancepart.spark.Protocol.PropertiesRequest;
import io.lancepart.spark.Protocol.RenameRequest;
import io.lancepart.spark.Protocol.Staged;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.NonEmptyNamespaceException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The tables of a warehouse: every decision is Python's, here its answers become Spark's. */
public final class LanceCatalog
    implements StagingTableCatalog, SupportsNamespaces, PartitionFunctions, ProcedureCatalog {
  private static final int NO_NAMESPACE = 1;
  private static final int NAMESPACE_EXISTS = 2;
  private static final int NOT_EMPTY = 3;
  private static final int NO_TABLE = 4;
  private static final int TABLE_EXISTS = 5;

  private String name;
  private Map<String, String> options;
  private Map<String, String> storage;
  private volatile Procedures procedures;

  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
    this.options = options.asCaseSensitiveMap();
    this.storage = new HashMap<>(this.options);
    this.storage.keySet().removeIf(key -> !key.startsWith("storage."));
  }

  @Override
  public String name() {
    return name;
  }

  private <T> T request(Operation operation, Object request, Class<T> reply, Identifier id) {
    return request(operation, request, reply, id, id);
  }

  private <T> T request(Operation operation, Object request, Class<T> reply, Identifier id, Identifier target) {
    try {
      return Python.requestOrRefusal(options, operation, request, reply);
    } catch (Python.Refused e) {
      throw Python.unchecked(refusal(e.failure, id, target));
    }
  }

  private static Exception refusal(Failure failure, Identifier id, Identifier target) {
    return switch (failure.code()) {
      case NO_TABLE -> new NoSuchTableException(id);
      case NO_NAMESPACE -> new NoSuchNamespaceException(target.namespace());
      case TABLE_EXISTS -> new TableAlreadyExistsException(target);
      case NAMESPACE_EXISTS -> new NamespaceAlreadyExistsException(id.namespace());
      case NOT_EMPTY -> new NonEmptyNamespaceException(id.namespace());
      default -> new UnsupportedOperationException(failure.message());
    };
  }

  private static List<String> path(Identifier id) {
    return List.of(joined(id.namespace(), id.name()));
  }

  @Override
  public String[][] listNamespaces() {
    return listNamespaces(new String[0]);
  }

  @Override
  public String[][] listNamespaces(String[] namespace) {
    var request = new PathRequest(List.of(namespace));
    return request(Operation.NAMESPACES, request, NamesReply.class, Identifier.of(namespace, "")).names().stream()
        .map(each -> joined(namespace, each)).toArray(String[][]::new);
  }

  private static String[] joined(String[] namespace, String last) {
    String[] all = Arrays.copyOf(namespace, namespace.length + 1);
    all[namespace.length] = last;
    return all;
  }

  @Override
  public Map<String, String> loadNamespaceMetadata(String[] namespace) {
    var request = new PathRequest(List.of(namespace));
    return request(Operation.NAMESPACE, request, PropertiesReply.class, Identifier.of(namespace, "")).properties();
  }

  @Override
  public void createNamespace(String[] namespace, Map<String, String> properties) {
    var request = new PropertiesRequest(List.of(namespace), properties);
    request(Operation.CREATE_NAMESPACE, request, Nothing.class, Identifier.of(namespace, ""));
  }

  @Override
  public void alterNamespace(String[] namespace, NamespaceChange... changes) {
    Map<String, String> properties = new HashMap<>();
    for (NamespaceChange change : changes) {
      if (change instanceof NamespaceChange.SetProperty set) {
        properties.put(set.property(), set.value());
      } else if (change instanceof NamespaceChange.RemoveProperty removed) {
        properties.put(removed.property(), null);
      }
    }
    var request = new PropertiesRequest(List.of(namespace), properties);
    request(Operation.ALTER_NAMESPACE, request, Nothing.class, Identifier.of(namespace, ""));
  }

  @Override
  public boolean dropNamespace(String[] namespace, boolean cascade) {
    var request = new DropNamespaceRequest(List.of(namespace), cascade);
    request(Operation.DROP_NAMESPACE, request, Nothing.class, Identifier.of(namespace, ""));
    return true;
  }

  @Override
  public Identifier[] listTables(String[] namespace) {
    var request = new PathRequest(List.of(namespace));
    return request(Operation.TABLES, request, NamesReply.class, Identifier.of(namespace, "")).names().stream()
        .map(each -> Identifier.of(namespace, each)).toArray(Identifier[]::new);
  }

  @Override
  public Table loadTable(Identifier id) {
    return loaded(Operation.LOAD, new LoadRequest(path(id), null, null), id);
  }

  @Override
  public Table loadTable(Identifier id, String version) {
    return loaded(Operation.LOAD, new LoadRequest(path(id), version, null), id);
  }

  @Override
  public Table loadTable(Identifier id, long micros) {
    return loaded(Operation.LOAD, new LoadRequest(path(id), null, micros), id);
  }

  private Table loaded(Operation operation, Object request, Identifier id) {
    LoadReply found = request(operation, request, LoadReply.class, id);
    StructType schema = Python.schema(found.schema());
    Map<String, String> properties = found.properties();
    if (found.readOnly() != null) {
      return new ReadOnlyTable(shown(id), schema, found.readOnly(), properties, options);
    }
    if (found.plain() != null) {
      Map<String, String> own = PlainTable.options(storage, options.get("warehouse"), found.plain());
      var named = PathIdentifier.named(shown(id), found.path(), own);
      return new PlainTable(named, schema, found.table(), properties, path(id), options);
    }
    PathIdentifier path = PathIdentifier.named(shown(id), found.path(), storage);
    return found.staged() != null
        ? new StagedPartitionedTable(path, schema, found.table(), properties, this, found.staged())
        : new PartitionedTable(path, schema, found.table(), properties);
  }

  private String shown(Identifier id) {
    return name + "." + String.join(".", joined(id.namespace(), id.name()));
  }

  @Override
  public Table createTable(Identifier id, TableInfo info) {
    return loaded(Operation.CREATE, making("create", id, info), id);
  }

  @Override
  public StagedTable stageCreate(Identifier id, TableInfo info) {
    return (StagedTable) loaded(Operation.STAGE, making("create", id, info), id);
  }

  @Override
  public StagedTable stageReplace(Identifier id, TableInfo info) {
    return (StagedTable) loaded(Operation.STAGE, making("replace", id, info), id);
  }

  @Override
  public StagedTable stageCreateOrReplace(Identifier id, TableInfo info) {
    return (StagedTable) loaded(Operation.STAGE, making("create_or_replace", id, info), id);
  }

  private static CreateRequest making(String mode, Identifier id, TableInfo info) {
    var by = Arrays.stream(info.partitions()).map(Keys::spelled).toList();
    return new CreateRequest(path(id), mode, Python.json(info.schema()), by, info.properties());
  }

  /** Publish or discard a table that was staged. */
  void settle(Operation operation, Staged staged) {
    String[] path = staged.id().toArray(String[]::new);
    Identifier id = Identifier.of(Arrays.copyOf(path, path.length - 1), path[path.length - 1]);
    request(operation, staged, Nothing.class, id);
  }

  @Override
  public Table alterTable(Identifier id, TableChange... changes) {
    request(Operation.ALTER, new AlterRequest(path(id), Changes.json(changes)), Nothing.class, id);
    return loadTable(id);
  }

  @Override
  public boolean dropTable(Identifier id) {
    return request(Operation.DROP, new PathRequest(path(id)), DroppedReply.class, id).dropped();
  }

  @Override
  public void renameTable(Identifier from, Identifier to) {
    request(Operation.RENAME, new RenameRequest(path(from), path(to)), Nothing.class, from, to);
  }

  /** They are the same as long as the catalog is, and are requested from Python once. */
  private Procedures procedures() {
    if (procedures == null) {
      Identifier none = Identifier.of(new String[0], "");
      procedures = new Procedures(this, request(Operation.PROCEDURES, new Nothing(), ProceduresReply.class, none));
    }
    return procedures;
  }

  @Override
  public UnboundProcedure loadProcedure(Identifier id) {
    UnboundProcedure found = procedures().find(id);
    if (found == null) {
      throw new IllegalArgumentException(
          "there is no procedure " + shown(id) + ": SHOW PROCEDURES IN " + name + " lists them");
    }
    return found;
  }

  @Override
  public Identifier[] listProcedures(String[] namespace) {
    return procedures().in(namespace);
  }

  /** Run a procedure; an error may be about a table that Spark did not look up, so that it says all of it itself. */
  CallReply call(String procedure, ObjectNode arguments) {
    int parallelism = SparkSession.active().sparkContext().defaultParallelism();
    try {
      return Python.requestOrRefusal(
          options, Operation.CALL, new CallRequest(procedure, name, arguments, parallelism), CallReply.class);
    } catch (Python.Refused e) {
      throw new UnsupportedOperationException(
          e.getMessage() + " (" + e.failure.error() + ", code " + e.failure.code() + ")");
    }
  }
}
