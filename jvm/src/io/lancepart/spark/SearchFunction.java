package io.lancepart.spark;

import com.fasterxml.jackson.databind.JsonNode;
import io.lancepart.spark.Protocol.Operation;
import io.lancepart.spark.Protocol.SearchReply;
import io.lancepart.spark.Protocol.SearchRequest;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.expressions.NamedArgumentExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.StructType;
import scala.Tuple3;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/**
 * The table function {@code lance_search}. With constants it is a table that the planning service answers; where the query
 * comes from rows of another table, which SQL calls lateral, it is a function that Spark's Python workers run.
 */
final class SearchFunction extends AbstractFunction1<Seq<Expression>, LogicalPlan> {
  private static final String NAME = "lance_search";
  private static final List<String> ORDER = List.of("table", "column", "query", "k", "where");
  private static final String TABLE = "table";
  private static final String VERSION = "version";
  private static final String USAGE = NAME + "(table => 'lance.ns.notes', column => 'embedding', query => array(…), k => 10, "
      + "where => '…', text => '…', version => 7): the k best rows of a table for a vector, a text, or both";

  static Tuple3<FunctionIdentifier, ExpressionInfo, scala.Function1<Seq<Expression>, LogicalPlan>> description() {
    var info = new ExpressionInfo(SearchFunction.class.getName(), null, NAME, USAGE, "");
    return new Tuple3<>(new FunctionIdentifier(NAME), info, new SearchFunction());
  }

  @Override
  public LogicalPlan apply(Seq<Expression> given) {
    Map<String, Expression> named = named(CollectionConverters.asJava(given));
    Map<String, JsonNode> constants = new LinkedHashMap<>();
    Map<String, Expression> varying = new LinkedHashMap<>();
    named.forEach((name, value) -> {
      if (value.foldable()) {
        constants.put(name, Constants.json(name, value));
      } else {
        varying.put(name, value);
      }
    });
    PartitionedTable table = table(constants.remove(TABLE), constants.remove(VERSION), varying);
    Map<String, JsonNode> types = new LinkedHashMap<>();
    varying.forEach((name, value) -> types.put(name, Constants.type(value.dataType())));
    var request = new SearchRequest(table.snapshot(), constants, types);
    SearchReply found = Python.request(table.options(), Operation.SEARCH, request, SearchReply.class);
    StructType schema = Python.schema(found.schema());
    return varying.isEmpty()
        ? SparkInternals.relation(new SearchTable(NAME + "(" + table.name() + ")", schema, table.snapshot(), constants,
            table.options()))
        : SparkInternals.tableFunction(NAME, found.function(), schema, List.copyOf(varying.values()));
  }

  private static Map<String, Expression> named(List<Expression> given) {
    Map<String, Expression> found = new LinkedHashMap<>();
    for (int i = 0; i < given.size(); i++) {
      boolean hasName = given.get(i) instanceof NamedArgumentExpression;
      if (!hasName && i >= ORDER.size()) {
        throw new IllegalArgumentException(
            NAME + " takes " + String.join(", ", ORDER) + " by their place: name all others, as in k => 10");
      }
      String name = given.get(i) instanceof NamedArgumentExpression each
          ? each.key().toLowerCase(Locale.ROOT) : ORDER.get(i);
      Expression value = given.get(i) instanceof NamedArgumentExpression each ? each.value() : given.get(i);
      if (found.put(name, value) != null) {
        throw new IllegalArgumentException(NAME + " is given the argument " + name + " twice");
      }
    }
    return found;
  }

  private static PartitionedTable table(JsonNode name, JsonNode version, Map<String, Expression> varying) {
    for (String each : List.of(TABLE, VERSION)) {
      if (varying.containsKey(each)) {
        throw new IllegalArgumentException("the argument " + each + " of " + NAME + " is not a constant");
      }
    }
    if (name == null || !name.isTextual()) {
      throw new IllegalArgumentException(
          NAME + " needs a table: give its name or its path as a text, as in table => 'lance.ns.notes'");
    }
    String wanted = version == null || version.isNull() ? null : version.asText();
    return TableNames.find(name.asText(), wanted);
  }
}
