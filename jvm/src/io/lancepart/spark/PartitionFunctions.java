package io.lancepart.spark;

import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;

/** A catalog that has the partition functions at its root. */
interface PartitionFunctions extends FunctionCatalog {
  @Override
  default UnboundFunction loadFunction(Identifier id) throws NoSuchFunctionException {
    UnboundFunction found = id.namespace().length == 0 ? Functions.find(id.name()) : null;
    if (found == null) {
      throw new NoSuchFunctionException(id);
    }
    return found;
  }

  @Override
  default Identifier[] listFunctions(String[] namespace) {
    return Functions.names().map(each -> Identifier.of(namespace, each)).toArray(Identifier[]::new);
  }
}
