package io.lancepart.spark;

import java.io.File;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.JobArtifactSet$;
import org.apache.spark.SparkEnv;
import org.apache.spark.SparkFiles;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskContext$;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.api.python.PythonUtils$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.util.CharVarcharUtils;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy$;
import org.apache.spark.sql.execution.datasources.v2.python.PythonBatchWriterFactory;
import org.apache.spark.sql.execution.datasources.v2.python.PythonCustomMetric;
import org.apache.spark.sql.execution.datasources.v2.python.PythonInputPartition;
import org.apache.spark.sql.execution.datasources.v2.python.PythonPartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.PythonWriterCommitMessage;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.python.ArrowPythonRunner;
import org.apache.spark.sql.execution.python.MapInBatchEvaluatorFactory;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.sql.execution.python.UserDefinedPythonTableFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Option;
import scala.Product;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * What the jar uses of Spark's insides that have no promise to stay as they are: all that it calls by reflection, and how
 * Spark runs Python functions, tasks and catalogs. Members that are called by reflection are looked for when this class is
 * loaded, all of them. If any part of what reads columns is not there, rows are read instead; without the field of cloned
 * sessions each clone has a planning service of its own; the others fail when they are used, with an error that names them.
 *
 * <p>Elsewhere the jar names Spark's classes where it extends Spark: Catalyst's plans in the strategies and rules
 * ({@link HashJoinStrategy}, {@link KeysWhereNeeded}, {@link RuntimeFilterStrategy}, {@link AppliedFilterStrategy},
 * {@link PartialAggregateStrategy}, {@link MergeSchema}), and Spark's Python data source in {@link Planner}. The compiler
 * checks these, and the tests run on each supported version.
 */
final class SparkInternals {
  private static final String RUNNER = System.getProperty("lancepart.columnar.runner",
      "org.apache.spark.sql.execution.python.MapInBatchEvaluatorFactory$MapInBatchEvaluator$$anon$1");
  /** PySpark's name for it is SQL_TABLE_UDF; those that give columns of Arrow's can't be used in lateral joins. */
  private static final int TABLE_FUNCTION = 300;
  private static final String MODULE = "lancepart.spark.service";
  private static final Constructor<?> COLUMNS = runnerOfColumns();
  private static final Field PARENT = parentField();
  private static final Method CATALOG_MANAGER = method(SessionState.class, "catalogManager");
  private static final Method CATALOG =
      CATALOG_MANAGER == null ? null : method(CATALOG_MANAGER.getReturnType(), "catalog", String.class);
  private static final Map<Class<?>, Method> COPIES =
      copies(AppendData.class, OverwriteByExpression.class, OverwritePartitionsDynamic.class);

  private SparkInternals() {}

  /** A filter as Spark pushes it down to a source; null if it does not. */
  static Predicate pushedForm(Expression condition) {
    Option<Predicate> found = DataSourceV2Strategy$.MODULE$.translateFilterV2(condition);
    return found.isDefined() ? found.get() : null;
  }

  /** The same relation with another scan; each version of Spark gives its constructor other parameters. */
  static DataSourceV2ScanRelation copy(DataSourceV2ScanRelation relation, Scan scan, List<AttributeReference> output) {
    Seq<AttributeReference> shown = CollectionConverters.asScala(output).toSeq();
    Object[] parts = CollectionConverters.asJava(relation.productIterator().toSeq()).stream()
        .map(each -> each == relation.scan() ? scan : each == relation.output() ? shown : each)
        .toArray();
    return (DataSourceV2ScanRelation) relation.makeCopy(parts);
  }

  /** A relation whose scan gives other rows, and so neither its keys nor its order. */
  static DataSourceV2ScanRelation unordered(DataSourceV2ScanRelation relation, Scan scan, List<AttributeReference> output) {
    Seq<AttributeReference> shown = CollectionConverters.asScala(output).toSeq();
    Object[] parts = CollectionConverters.asJava(relation.productIterator().toSeq()).stream()
        .map(each -> each == relation.scan() ? scan : each == relation.output() ? shown
            : each instanceof Option ? Option.empty() : each)
        .toArray();
    return (DataSourceV2ScanRelation) relation.makeCopy(parts);
  }

  /** The constructor of the runner whose batches are columns, if all that is used with it is there; else null. */
  private static Constructor<?> runnerOfColumns() {
    try {
      Constructor<?>[] all = Class.forName(RUNNER).getConstructors();
      Constructor<?> found = all.length == 1 ? all[0] : null;
      boolean known = found != null
          && ArrowPythonRunner.class.isAssignableFrom(found.getDeclaringClass())
          && found.getParameterCount() == 2
          && found.getParameterTypes()[1] == int[][].class;
      UserDefinedPythonDataSource.class.getMethod("createMapInBatchEvaluatorFactory", byte[].class, String.class,
          StructType.class, StructType.class, scala.collection.immutable.Map.class, Option.class, Option.class);
      UserDefinedPythonDataSource.class.getMethod("createPythonTaskMetrics", scala.collection.immutable.Map.class);
      UserDefinedPythonDataSource.class.getMethod("readInputSchema");
      MapInBatchEvaluatorFactory.class.getMethod("createEvaluator");
      Class.forName("org.apache.spark.sql.execution.datasources.v2.python.PythonCustomMetric").getMethod("pythonMetrics");
      return known ? found : null;
    } catch (ReflectiveOperationException | LinkageError e) {
      return null;
    }
  }

  /** A public method, or null. */
  private static Method method(Class<?> owner, String name, Class<?>... parameters) {
    try {
      return owner.getMethod(name, parameters);
    } catch (ReflectiveOperationException e) {
      return null;
    }
  }

  /** The method of each plan that copies it with other values, which has one parameter more in newer versions of Spark. */
  private static Map<Class<?>, Method> copies(Class<?>... plans) {
    Map<Class<?>, Method> found = new HashMap<>();
    for (Class<?> plan : plans) {
      Arrays.stream(plan.getMethods()).filter(each -> each.getName().equals("copy"))
          .max(Comparator.comparingInt(Method::getParameterCount)).ifPresent(each -> found.put(plan, each));
    }
    return found;
  }

  private static Field parentField() {
    try {
      Field found = SparkSession.class.getDeclaredField("parentSessionState");
      found.setAccessible(true);
      return found.getType() == Option.class ? found : null;
    } catch (ReflectiveOperationException | RuntimeException e) {
      return null;
    }
  }

  /** The state of the session that Spark cloned this one of; null for one that is no clone, or if Spark does not say. */
  static SessionState parent(SparkSession session) {
    try {
      return PARENT != null && PARENT.get(session) instanceof Option<?> found && found.isDefined()
          && found.get() instanceof SessionState state ? state : null;
    } catch (IllegalAccessException e) {
      return null;
    }
  }

  static boolean canReadColumns() {
    return COLUMNS != null;
  }

  /** The batches of a function of Python's in this task, each one column with all columns in it. */
  static Iterator<ColumnarBatch> columns(PlannedRead.Readers read, byte[] task, scala.collection.immutable.Map<String, SQLMetric> metrics) {
    var evaluators = read.source().createMapInBatchEvaluatorFactory(read.function(), "read_from_data_source",
        UserDefinedPythonDataSource.readInputSchema(), read.schema(), metrics, read.artifacts(), read.session());
    TaskContext context = TaskContext.get();
    return runner(evaluators).compute(single(single(row(row(task)))), context.partitionId(), context);
  }

  /** Metrics of one reader: Spark's own are one set for the whole JVM, which every reader adds to and none clears. */
  static scala.collection.immutable.Map<String, SQLMetric> metrics() {
    var fresh = CollectionConverters.asJava(PythonCustomMetric.pythonMetrics()).entrySet().stream()
        .map(each -> new Tuple2<>(each.getKey(), new SQLMetric(each.getValue().metricType(), 0L))).toList();
    return scala.collection.immutable.Map.from(CollectionConverters.asScala(fresh));
  }

  static CustomTaskMetric[] values(
      PlannedRead.Readers read, scala.collection.immutable.Map<String, SQLMetric> metrics, Map<String, Long> before) {
    var values = CollectionConverters.asJava(metrics).entrySet().stream()
        .map(each -> new Tuple2<String, Object>(
            each.getKey(), Math.max(each.getValue().value(), 0L) + before.getOrDefault(each.getKey(), 0L)))
        .toList();
    return read.source().createPythonTaskMetrics(
        scala.collection.immutable.Map.from(CollectionConverters.asScala(values)));
  }

  private static InternalRow row(Object value) {
    return new GenericInternalRow(new Object[] {value});
  }

  private static <T> Iterator<T> single(T value) {
    return CollectionConverters.asScala(List.of(value).iterator());
  }

  private static ArrowPythonRunner runner(MapInBatchEvaluatorFactory evaluators) {
    try {
      return (ArrowPythonRunner) COLUMNS.newInstance(evaluators.createEvaluator(), new int[][] {{0}});
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("Spark's runner of Python sources can't be made", e);
    }
  }

  /** A data source of Python's, as Spark's readers and writers want one: they take the interpreter from it. */
  static UserDefinedPythonDataSource source(byte[] pickled) {
    return new UserDefinedPythonDataSource(PythonUtils$.MODULE$.createPythonFunction(pickled));
  }

  /** Spark's reader of a function that Python pickled; it makes rows. */
  static PartitionReaderFactory readers(PlannedRead.Readers read) {
    return new PythonPartitionReaderFactory(
        read.source(), read.function(), read.schema(), read.artifacts(), read.session());
  }

  static InputPartition partition(int index, byte[] task) {
    return new PythonInputPartition(index, task);
  }

  static byte[] task(InputPartition partition) {
    return ((PythonInputPartition) partition).pickedPartition();
  }

  /** Spark's writer of a function that Python pickled. */
  static DataWriterFactory writers(UserDefinedPythonDataSource source, byte[] function, StructType schema) {
    return new PythonBatchWriterFactory(source, function, schema, artifacts(), session());
  }

  static byte[] report(WriterCommitMessage message) {
    return ((PythonWriterCommitMessage) message).pickledMessage();
  }

  static CustomMetric[] metrics(UserDefinedPythonDataSource source) {
    return source.createPythonMetrics();
  }

  /** A catalog of a session by its name. Its manager is a class in Spark 4.1 and an interface in 4.3: no call fits both. */
  static CatalogPlugin catalog(SparkSession session, String name) {
    if (CATALOG == null) {
      throw new UnsupportedOperationException("this version of Spark has no SessionState.catalogManager.catalog(name)");
    }
    try {
      return (CatalogPlugin) CATALOG.invoke(CATALOG_MANAGER.invoke(session.sessionState()), name);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("Spark's catalog " + name + " can't be found", e);
    }
  }

  static scala.collection.immutable.Seq<String> identifier(ParserInterface parser, String text) {
    try {
      return parser.parseMultipartIdentifier(text);
    } catch (ParseException e) {
      throw new IllegalArgumentException("'" + text + "' is no name of a table: write catalog.namespace.table", e);
    }
  }

  /** A field of a plan by its name, or null. */
  static Object field(LogicalPlan plan, String name) {
    return element(plan, name);
  }

  /** What a node of a plan, or what it is made of, has under a name, or null. */
  static Object element(Product plan, String name) {
    for (int i = 0; i < plan.productArity(); i++) {
      if (plan.productElementName(i).equals(name)) {
        return plan.productElement(i);
      }
    }
    return null;
  }

  /** The same node with something else under a name. */
  static TreeNode<?> with(TreeNode<?> node, String name, Object value) {
    Product product = (Product) node;
    Object[] values = new Object[product.productArity()];
    for (int i = 0; i < values.length; i++) {
      values[i] = product.productElementName(i).equals(name) ? value : product.productElement(i);
    }
    return (TreeNode<?>) node.makeCopy(values);
  }

  /** The same write WITH SCHEMA EVOLUTION, where this Spark has that for frames: no call fits the plans of all versions. */
  static LogicalPlan withSchemaEvolution(LogicalPlan write) {
    Object[] values = new Object[write.productArity()];
    boolean known = false;
    for (int i = 0; i < values.length; i++) {
      boolean wanted = write.productElementName(i).equals("withSchemaEvolution");
      values[i] = wanted ? Boolean.TRUE : write.productElement(i);
      known |= wanted;
    }
    if (!known) {
      throw new UnsupportedOperationException("mergeSchema needs Spark 4.2 or newer: add the columns with ALTER TABLE");
    }
    Method copy = COPIES.get(write.getClass());
    if (copy == null || copy.getParameterCount() != values.length) {
      throw new UnsupportedOperationException("this version of Spark has no copy of " + write.nodeName());
    }
    try {
      return (LogicalPlan) copy.invoke(write, values);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("a write can't be copied", e);
    }
  }

  /** Make this thread one of a task, for what the task's writers look up by thread. */
  static void join(TaskContext task) {
    TaskContext$.MODULE$.setTaskContext(task);
  }

  /** A table in a query, of which no catalog knows. */
  static LogicalPlan relation(Table table) {
    return DataSourceV2Relation.create(table, Option.empty(), Option.empty());
  }

  /** A table function that Spark's Python workers run on arguments that vary by row. */
  static LogicalPlan tableFunction(String name, byte[] pickled, StructType schema, List<Expression> arguments) {
    var function = new UserDefinedPythonTableFunction(
        name, PythonUtils$.MODULE$.createPythonFunction(pickled), Option.apply(schema), TABLE_FUNCTION, true);
    return function.builder(CollectionConverters.asScala(arguments).toSeq(), () -> {
      throw new IllegalStateException("the columns of " + name + " are known");
    });
  }

  /** The files that a Connect session has added, which its Python workers are given. */
  static Option<String> artifacts() {
    return JobArtifactSet$.MODULE$.getCurrentJobArtifactState().map(each -> each.uuid());
  }

  static Option<String> session() {
    return Option.apply(((SparkSession) SparkSession.active()).sessionUUID());
  }

  /**
   * How the planning service may be started, the best way first: by the driver's Python if the application or its
   * environment names one, by the workers', or by python3. Only the application's own settings count: those of a session
   * are its user's, who may not choose what the driver runs.
   */
  static List<List<String>> pythons(SparkSession session) {
    var conf = session.sparkContext().conf();
    Set<String> found = Stream.of(
            conf.get("spark.pyspark.driver.python", null), System.getenv("PYSPARK_DRIVER_PYTHON"),
            conf.get("spark.pyspark.python", null), System.getenv("PYSPARK_PYTHON"), "python3")
        .filter(Objects::nonNull).filter(each -> !each.isBlank())
        .filter(each -> Path.of(each).getFileName().toString().startsWith("py"))
        .collect(Collectors.toCollection(LinkedHashSet::new));
    List<List<String>> commands = new ArrayList<>();
    found.forEach(each -> commands.add(List.of(each, "-P", "-m", MODULE)));
    return commands;
  }

  /** Where Python finds its modules: as Spark's workers do, with the files of --py-files. */
  static Map<String, String> pythonEnvironment() {
    List<String> paths = new ArrayList<>();
    paths.add(PythonUtils.sparkPythonPath());
    String added = SparkEnv.get().conf().get("spark.submit.pyFiles", "");
    for (String file : added.split(",")) {
      Path place = Path.of(SparkFiles.getRootDirectory(), file.substring(file.lastIndexOf('/') + 1));
      if (!file.isBlank() && Files.exists(place)) {
        paths.add(place.toString());
      }
    }
    paths.add(System.getenv().getOrDefault("PYTHONPATH", ""));
    paths.removeIf(String::isBlank);
    return Map.of("PYTHONPATH", String.join(File.pathSeparator, paths));
  }

  /** The type of a column of texts with a length, as users wrote it; null for any other column. */
  static DataType textType(StructField field) {
    Option<DataType> found = CharVarcharUtils.getRawType(field.metadata());
    return found.isEmpty() ? null : found.get();
  }
}
