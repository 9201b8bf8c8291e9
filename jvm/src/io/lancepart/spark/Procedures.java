package io.lancepart.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.lancepart.spark.Protocol.CallReply;
import io.lancepart.spark.Protocol.Parameter;
import io.lancepart.spark.Protocol.ProcedureInfo;
import io.lancepart.spark.Protocol.ProceduresReply;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** The procedures that Python knows: calls go there as JSON, and their rows come back so. */
final class Procedures {
  private final LanceCatalog catalog;
  private final ProceduresReply known;

  Procedures(LanceCatalog catalog, ProceduresReply known) {
    this.catalog = catalog;
    this.known = known;
  }

  private boolean has(String[] namespace) {
    return namespace.length == 1 && namespace[0].equalsIgnoreCase(known.namespace());
  }

  /** The procedure of a name, or null. */
  UnboundProcedure find(Identifier id) {
    String name = id.name().toLowerCase(Locale.ROOT);
    ProcedureInfo found = has(id.namespace()) ? known.procedures().get(name) : null;
    return found == null ? null : new One(catalog, name, found);
  }

  Identifier[] in(String[] namespace) {
    String[] home = {known.namespace()};
    boolean shown = namespace.length == 0 || has(namespace);
    return shown
        ? known.procedures().keySet().stream().map(each -> Identifier.of(home, each)).toArray(Identifier[]::new)
        : new Identifier[0];
  }

  /** One procedure; it takes the same arguments however it is called. */
  private record One(LanceCatalog catalog, String name, ProcedureInfo info) implements UnboundProcedure, BoundProcedure {
    @Override
    public String description() {
      return info.comment();
    }

    @Override
    public String toString() {
      return name;
    }

    @Override
    public BoundProcedure bind(StructType given) {
      return this;
    }

    @Override
    public boolean isDeterministic() {
      return false;
    }

    @Override
    public ProcedureParameter[] parameters() {
      return info.parameters().stream().map(One::made).toArray(ProcedureParameter[]::new);
    }

    private static ProcedureParameter made(Parameter each) {
      var made = ProcedureParameter.in(each.name(), DataType.fromDDL(each.type())).comment(each.comment());
      return (each.defaultValue() == null ? made : made.defaultValue(each.defaultValue())).build();
    }

    @Override
    public Iterator<Scan> call(InternalRow given) {
      ObjectNode arguments = Python.JSON.createObjectNode();
      ProcedureParameter[] all = parameters();
      for (int i = 0; i < all.length; i++) {
        put(arguments, all[i], given, i);
      }
      CallReply done = catalog.call(name, arguments);
      return List.<Scan>of(Rows.of(Python.schema(done.schema()), done.rows())).iterator();
    }

    private static void put(ObjectNode arguments, ProcedureParameter parameter, InternalRow given, int i) {
      String key = parameter.name();
      if (given.isNullAt(i)) {
        arguments.putNull(key);
      } else if (parameter.dataType() instanceof StringType) {
        arguments.put(key, given.getUTF8String(i).toString());
      } else if (parameter.dataType() instanceof BooleanType) {
        arguments.put(key, given.getBoolean(i));
      } else if (parameter.dataType() instanceof MapType) {
        MapData pairs = given.getMap(i);
        ObjectNode texts = arguments.putObject(key);
        for (int j = 0; j < pairs.numElements(); j++) {
          UTF8String value = pairs.valueArray().getUTF8String(j);
          texts.put(pairs.keyArray().getUTF8String(j).toString(), value == null ? null : value.toString());
        }
      } else if (parameter.dataType() instanceof ArrayType) {
        ArrayNode texts = arguments.putArray(key);
        for (Object each : given.getArray(i).toObjectArray(DataTypes.StringType)) {
          texts.add(each == null ? null : each.toString());
        }
      } else {
        arguments.put(key, given.getLong(i));
      }
    }
  }

  /** The rows that a call answers. */
  private record Rows(StructType readSchema, InternalRow[] rows) implements LocalScan {
    static Rows of(StructType schema, JsonNode json) {
      InternalRow[] rows = new InternalRow[json.size()];
      for (int i = 0; i < rows.length; i++) {
        Object[] values = new Object[schema.length()];
        for (int j = 0; j < values.length; j++) {
          values[j] = value(json.get(i).get(j), schema.fields()[j].dataType());
        }
        rows[i] = new GenericInternalRow(values);
      }
      return new Rows(schema, rows);
    }

    private static Object value(JsonNode json, DataType type) {
      if (!(type instanceof ArrayType)) {
        return Keys.key(Python.JSON.createArrayNode().add(json), new DataType[] {type})[0];
      }
      Object[] texts = new Object[json.size()];
      for (int i = 0; i < texts.length; i++) {
        texts[i] = value(json.get(i), DataTypes.StringType);
      }
      return new GenericArrayData(texts);
    }
  }
}
