package io.lancepart.spark;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table by its path; the options ride along unseen, since they may hold credentials. */
final class PathIdentifier implements Identifier {
  private final String path;
  private final Map<String, String> options;

  private PathIdentifier(String path, Map<String, String> options) {
    this.path = path;
    this.options = options;
  }

  static PathIdentifier of(CaseInsensitiveStringMap options) {
    String path = options.get("path");
    if (path == null || path.isBlank()) {
      throw new IllegalArgumentException("lancepart reads a table at a path: give it to load(path)");
    }
    return new PathIdentifier(path, options.asCaseSensitiveMap());
  }

  static PathIdentifier of(String path, Map<String, String> options) {
    Map<String, String> all = new HashMap<>(options);
    all.put("path", path);
    return new PathIdentifier(path, all);
  }

  Map<String, String> options() {
    return options;
  }

  @Override
  public String[] namespace() {
    return new String[0];
  }

  @Override
  public String name() {
    return path;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof PathIdentifier that && path.equals(that.path) && options.equals(that.options);
  }

  @Override
  public int hashCode() {
    return path.hashCode();
  }

  @Override
  public String toString() {
    return path;
  }
}
