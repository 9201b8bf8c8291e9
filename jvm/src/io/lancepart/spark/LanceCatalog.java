package io.lancepart.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
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
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The tables of a warehouse: every decision is Python's, here its answers become Spark's. */
public final class LanceCatalog
    implements StagingTableCatalog, SupportsNamespaces, PartitionFunctions, ProcedureCatalog {
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

  private static ObjectNode question(String what, String[] namespace, String... last) {
    ObjectNode question = Python.JSON.createObjectNode().put("ask", "warehouse").put("do", what);
    ArrayNode path = question.putArray("id");
    Arrays.stream(namespace).forEach(path::add);
    Arrays.stream(last).forEach(path::add);
    return question;
  }

  private static ObjectNode question(String what, Identifier id) {
    return question(what, id.namespace(), id.name());
  }

  private Python ask(ObjectNode question, Identifier id) {
    return ask(question, id, id);
  }

  private Python ask(ObjectNode question, Identifier id, Identifier target) {
    Python python = Python.ask(options, question);
    JsonNode error = python.answer.get("error");
    if (error != null) {
      throw LanceCatalog.<RuntimeException>unchecked(
          refusal(error.asText(), python.answer.get("message").asText(), id, target));
    }
    return python;
  }

  private static Exception refusal(String kind, String message, Identifier id, Identifier target) {
    return switch (kind) {
      case "no_table" -> new NoSuchTableException(id);
      case "no_namespace" -> new NoSuchNamespaceException(target.namespace());
      case "table_exists" -> new TableAlreadyExistsException(target);
      case "namespace_exists" -> new NamespaceAlreadyExistsException(id.namespace());
      case "not_empty" -> new NonEmptyNamespaceException(id.namespace());
      default -> new UnsupportedOperationException(message);
    };
  }

  /** Spark's exceptions are checked ones that not all of its interfaces declare. */
  @SuppressWarnings("unchecked")
  private static <E extends Exception> E unchecked(Exception exception) throws E {
    throw (E) exception;
  }

  private static Map<String, String> texts(JsonNode told) {
    Map<String, String> found = new HashMap<>();
    told.properties().forEach(each -> found.put(each.getKey(), each.getValue().asText()));
    return found;
  }

  private static String[] names(JsonNode told) {
    String[] found = new String[told.size()];
    for (int i = 0; i < found.length; i++) {
      found[i] = told.get(i).asText();
    }
    return found;
  }

  @Override
  public String[][] listNamespaces() {
    return listNamespaces(new String[0]);
  }

  @Override
  public String[][] listNamespaces(String[] namespace) {
    Python told = ask(question("namespaces", namespace), Identifier.of(namespace, ""));
    return Arrays.stream(names(told.answer.get("names"))).map(each -> joined(namespace, each)).toArray(String[][]::new);
  }

  private static String[] joined(String[] namespace, String last) {
    String[] all = Arrays.copyOf(namespace, namespace.length + 1);
    all[namespace.length] = last;
    return all;
  }

  @Override
  public Map<String, String> loadNamespaceMetadata(String[] namespace) {
    return texts(ask(question("namespace", namespace), Identifier.of(namespace, "")).answer.get("properties"));
  }

  @Override
  public void createNamespace(String[] namespace, Map<String, String> properties) {
    ObjectNode question = question("create_namespace", namespace);
    properties.forEach(question.putObject("properties")::put);
    ask(question, Identifier.of(namespace, ""));
  }

  @Override
  public void alterNamespace(String[] namespace, NamespaceChange... changes) {
    ObjectNode question = question("alter_namespace", namespace);
    ObjectNode told = question.putObject("properties");
    for (NamespaceChange change : changes) {
      if (change instanceof NamespaceChange.SetProperty set) {
        told.put(set.property(), set.value());
      } else if (change instanceof NamespaceChange.RemoveProperty removed) {
        told.putNull(removed.property());
      }
    }
    ask(question, Identifier.of(namespace, ""));
  }

  @Override
  public boolean dropNamespace(String[] namespace, boolean cascade) {
    ask(question("drop_namespace", namespace).put("cascade", cascade), Identifier.of(namespace, ""));
    return true;
  }

  @Override
  public Identifier[] listTables(String[] namespace) {
    Python told = ask(question("tables", namespace), Identifier.of(namespace, ""));
    return Arrays.stream(names(told.answer.get("names")))
        .map(each -> Identifier.of(namespace, each)).toArray(Identifier[]::new);
  }

  @Override
  public Table loadTable(Identifier id) {
    return loaded(question("load", id), id);
  }

  @Override
  public Table loadTable(Identifier id, String version) {
    return loaded(question("load", id).put("version", version), id);
  }

  @Override
  public Table loadTable(Identifier id, long micros) {
    return loaded(question("load", id).put("timestamp", micros), id);
  }

  private Table loaded(ObjectNode question, Identifier id) {
    Python told = ask(question, id);
    JsonNode answer = told.answer;
    Map<String, String> properties = texts(answer.get("properties"));
    if (answer.has("side")) {
      return new SideTable(shown(id), told.schema, answer.get("side"), properties, options);
    }
    PathIdentifier path = PathIdentifier.named(shown(id), answer.get("path").asText(), storage);
    return answer.has("staged")
        ? new StagedPartitionedTable(path, told.schema, answer.get("table"), properties, this, answer.get("staged"))
        : new PartitionedTable(path, told.schema, answer.get("table"), properties);
  }

  private String shown(Identifier id) {
    return name + "." + String.join(".", joined(id.namespace(), id.name()));
  }

  @Override
  public Table createTable(Identifier id, TableInfo info) {
    return loaded(making("create", "create", id, info), id);
  }

  @Override
  public StagedTable stageCreate(Identifier id, TableInfo info) {
    return (StagedTable) loaded(making("stage", "create", id, info), id);
  }

  @Override
  public StagedTable stageReplace(Identifier id, TableInfo info) {
    return (StagedTable) loaded(making("stage", "replace", id, info), id);
  }

  @Override
  public StagedTable stageCreateOrReplace(Identifier id, TableInfo info) {
    return (StagedTable) loaded(making("stage", "create_or_replace", id, info), id);
  }

  private static ObjectNode making(String what, String mode, Identifier id, TableInfo info) {
    ObjectNode question = question(what, id).put("mode", mode);
    try {
      question.set("schema", Python.JSON.readTree(info.schema().json()));
    } catch (JsonProcessingException e) {
      throw new IllegalStateException("a schema is not JSON", e);
    }
    Arrays.stream(info.partitions()).map(Keys::spelled).forEach(question.putArray("by")::add);
    info.properties().forEach(question.putObject("properties")::put);
    return question;
  }

  /** Publish or discard a table that was staged. */
  void settle(String what, JsonNode staged) {
    ObjectNode question = staged.deepCopy();
    String[] path = names(staged.get("id"));
    question.put("ask", "warehouse").put("do", what);
    ask(question, Identifier.of(Arrays.copyOf(path, path.length - 1), path[path.length - 1]));
  }

  @Override
  public Table alterTable(Identifier id, TableChange... changes) {
    ObjectNode question = question("alter", id);
    question.set("changes", Changes.json(changes));
    ask(question, id);
    return loadTable(id);
  }

  @Override
  public boolean dropTable(Identifier id) {
    return ask(question("drop", id), id).answer.get("dropped").asBoolean();
  }

  @Override
  public void renameTable(Identifier from, Identifier to) {
    ObjectNode question = question("rename", from);
    ArrayNode target = question.putArray("to");
    Arrays.stream(joined(to.namespace(), to.name())).forEach(target::add);
    ask(question, from, to);
  }

  /** They are the same as long as the catalog is, and Python is asked for them once. */
  private Procedures procedures() {
    if (procedures == null) {
      Python told = ask(question("procedures", new String[0]), Identifier.of(new String[0], ""));
      procedures = new Procedures(this, told.answer);
    }
    return procedures;
  }

  @Override
  public UnboundProcedure loadProcedure(Identifier id) {
    UnboundProcedure found = procedures().find(id);
    if (found == null) {
      throw new IllegalArgumentException(
          "there is no procedure " + shown(id) + ": SHOW PROCEDURES IN " + name + " tells which there are");
    }
    return found;
  }

  @Override
  public Identifier[] listProcedures(String[] namespace) {
    return procedures().in(namespace);
  }

  /** Run a procedure. */
  Python call(String procedure, ObjectNode arguments) {
    ObjectNode question = question("call", new String[0]).put("procedure", procedure).put("catalog", name);
    question.set("arguments", arguments);
    return ask(question, Identifier.of(new String[0], procedure));
  }
}
