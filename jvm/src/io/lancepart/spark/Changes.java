package io.lancepart.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.catalog.TableChange;

/** ALTER TABLE as JSON for Python, which decides what can be done. */
final class Changes {
  private Changes() {}

  static ArrayNode json(TableChange[] changes) {
    ArrayNode all = Python.JSON.createArrayNode();
    for (TableChange change : changes) {
      ObjectNode node = all.addObject();
      if (change instanceof TableChange.SetProperty set) {
        node.put("change", "property").put("key", set.property()).put("value", set.value());
      } else if (change instanceof TableChange.RemoveProperty removed) {
        node.put("change", "property").put("key", removed.property()).putNull("value");
      } else if (change instanceof TableChange.AddColumn added && added.defaultValue() == null) {
        column(node, added).put("change", "add").put("type", added.dataType().json())
            .put("nullable", added.isNullable()).put("positioned", added.position() != null)
            .put("comment", added.comment());
      } else if (change instanceof TableChange.UpdateColumnComment commented) {
        column(node, commented).put("change", "comment").put("comment", commented.newComment());
      } else if (change instanceof TableChange.RenameColumn renamed) {
        column(node, renamed).put("change", "rename").put("to", renamed.newName());
      } else if (change instanceof TableChange.DeleteColumn deleted) {
        column(node, deleted).put("change", "drop");
      } else if (change instanceof TableChange.UpdateColumnType typed) {
        column(node, typed).put("change", "type").put("type", typed.newDataType().json());
      } else {
        node.put("change", "unknown").put("text", change.getClass().getSimpleName());
      }
    }
    return all;
  }

  private static ObjectNode column(ObjectNode node, TableChange.ColumnChange change) {
    ArrayNode path = node.putArray("column");
    for (String part : change.fieldNames()) {
      path.add(part);
    }
    return node;
  }
}
