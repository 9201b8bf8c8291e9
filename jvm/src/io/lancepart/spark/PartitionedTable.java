package io.lancepart.spark;

import com.fasterxml.jackson.databind.JsonNode;
import io.lancepart.spark.Protocol.Committed;
import io.lancepart.spark.Protocol.DeleteRequest;
import io.lancepart.spark.Protocol.ExistsReply;
import io.lancepart.spark.Protocol.Nothing;
import io.lancepart.spark.Protocol.Operation;
import io.lancepart.spark.Protocol.PartitionsReply;
import io.lancepart.spark.Protocol.PartitionsRequest;
import io.lancepart.spark.Protocol.TableInfo;
import io.lancepart.spark.Protocol.TableReply;
import io.lancepart.spark.Protocol.WriteRequest;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsDeleteV2;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.expressions.filter.AlwaysTrue;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table at one snapshot, fixed when it is loaded: everything that is read of it is of that snapshot. */
class PartitionedTable
    implements Table, SupportsRead, SupportsWrite, SupportsDeleteV2, SupportsRowLevelOperations, SupportsMetadataColumns,
        ListsPartitions {
  private final PathIdentifier id;
  private final StructType schema;
  private final TableInfo info;
  private final Map<String, String> properties;
  private final ScanPlans plans;
  private final List<LanceScanBuilder> searched = new CopyOnWriteArrayList<>();

  PartitionedTable(PathIdentifier id, StructType schema, TableInfo info, Map<String, String> properties) {
    this.id = id;
    this.schema = schema;
    this.info = info;
    this.properties = properties;
    this.plans = new ScanPlans(info.snapshots());
  }

  static PartitionedTable load(PathIdentifier id) {
    TableReply found = Python.request(id.options(), Operation.TABLE, new Nothing(), TableReply.class);
    return new PartitionedTable(id, Python.schema(found.schema()), found.table(), Map.of());
  }

  static boolean exists(PathIdentifier id) {
    return Python.request(id.options(), Operation.EXISTS, new Nothing(), ExistsReply.class).exists();
  }

  long snapshot() {
    return info.version();
  }

  ScanPlans plans() {
    return plans;
  }

  /** The columns that partition values are made of, which is where a filter found at run time can help. */
  Set<String> partitionSources() {
    return new HashSet<>(info.sources());
  }

  /** The columns whose comparisons mean the same in Python as in Spark, whatever the literal. */
  Set<String> exactColumns() {
    Set<String> found = new HashSet<>(info.exact());
    found.removeIf(name -> schema.apply(name).dataType() instanceof DecimalType);
    return found;
  }

  /** Whether a filter keeps exactly the rows in Python that it keeps in Spark; decimals need literals of their own type. */
  boolean isExact(Predicate predicate) {
    return FilterJson.isExact(predicate, new HashSet<>(info.exact())) && FilterJson.hasTypes(predicate, schema);
  }

  /**
   * The columns whose filters Spark need not look at again: those of partition values alone, since of others Spark wants
   * to see a filter in its plan before it carries what it finds to the other side of a join.
   */
  Set<String> handledColumns() {
    Set<String> found = exactColumns();
    found.retainAll(partitionSources());
    return found;
  }

  Map<String, String> options() {
    return id.options();
  }

  Map<String, String> options(CaseInsensitiveStringMap more) {
    return Options.stated(id.options(), more.asCaseSensitiveMap());
  }

  @Override
  public String name() {
    return id.shown();
  }

  @Override
  public Map<String, String> properties() {
    return new LineageProperties(properties, id.name());
  }

  @Override
  @SuppressWarnings("deprecation")
  public StructType schema() {
    return schema;
  }

  /** The columns with CHAR(n) and VARCHAR(n) as users wrote them; the rows of a scan have texts. */
  @Override
  public Column[] columns() {
    Column[] all = SupportsRead.super.columns();
    for (int i = 0; i < all.length; i++) {
      DataType text = SparkInternals.textType(schema.fields()[i]);
      if (text != null) {
        all[i] = Column.create(all[i].name(), text, all[i].nullable(), all[i].comment(), all[i].metadataInJSON());
      }
    }
    return all;
  }

  @Override
  public Transform[] partitioning() {
    return Keys.written(info.by());
  }

  @Override
  public Set<TableCapability> capabilities() {
    return EnumSet.of(TableCapability.BATCH_READ, TableCapability.BATCH_WRITE,
        TableCapability.TRUNCATE, TableCapability.OVERWRITE_BY_FILTER, TableCapability.OVERWRITE_DYNAMIC,
        TableCapability.MICRO_BATCH_READ, TableCapability.STREAMING_WRITE,
        TableCapability.AUTOMATIC_SCHEMA_EVOLUTION);
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo write) {
    return Inserting.isWanted(write) && info.snapshots() ? Inserting.builder(inserting(write))
        : new LanceWriteBuilder(id.options(), write, Keys.transforms(info.partitioning()), properties);
  }

  /** The write of a MERGE that only inserts, which fails if another writer changes what it has looked through. */
  Write inserting(LogicalWriteInfo write) {
    WriteLayout layout = layout(write);
    var metrics = new WriteMetrics();
    return new Inserting(write, layout, metrics, () -> rows("merge", layout.with(options(write.options())), write.schema(),
        searched, metrics));
  }

  /** A write of rows that depend on what some scans have read, each with the same filters unless all of the table counts. */
  PlannedWrite rows(
      String command, Map<String, String> options, StructType rows, List<LanceScanBuilder> reads, WriteMetrics metrics) {
    boolean alike = reads.stream().map(each -> List.of(each.handled(), each.pushed())).distinct().count() == 1;
    List<JsonNode> handled = alike ? reads.get(0).handled() : List.of();
    List<JsonNode> pushed = alike ? reads.get(0).pushed() : List.of();
    var request = new WriteRequest("rows", Python.json(rows), List.of(), handled, pushed, snapshot(), command);
    return new PlannedWrite(options, request, rows, metrics);
  }

  /** How rows come to the tasks of a write, and how large files become. */
  WriteLayout layout(LogicalWriteInfo write) {
    return WriteLayout.of(write.options(), properties, Keys.transforms(info.partitioning()), write.schema());
  }

  @Override
  public boolean canDeleteWhere(Predicate[] predicates) {
    Set<String> exact = exactColumns();
    return Arrays.stream(predicates).allMatch(each -> each instanceof AlwaysTrue || FilterJson.isExact(each, exact));
  }

  @Override
  public void deleteWhere(Predicate[] predicates) {
    var where = Arrays.stream(predicates).filter(each -> !(each instanceof AlwaysTrue)).toList();
    Python.request(id.options(), Operation.DELETE, new DeleteRequest(FilterJson.json(where)), Committed.class);
  }

  @Override
  public StructType partitionSchema() {
    return ListsPartitions.schema(info.fields());
  }

  @Override
  public JsonNode partitionValues() {
    var request = new PartitionsRequest(snapshot());
    return Python.request(id.options(), Operation.PARTITIONS, request, PartitionsReply.class).partitions();
  }

  @Override
  public MetadataColumn[] metadataColumns() {
    return RowIdentity.columns();
  }

  @Override
  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo operation) {
    return () -> new RowOperation(this, operation.command());
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    var builder = new LanceScanBuilder(this, options(options));
    if (options.containsKey(Options.INSERTING)) {
      searched.add(builder);
    }
    return builder;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof PartitionedTable that
        && id.equals(that.id) && snapshot() == that.snapshot() && schema.equals(that.schema);
  }

  @Override
  public int hashCode() {
    return Objects.hash(id, snapshot());
  }
}
