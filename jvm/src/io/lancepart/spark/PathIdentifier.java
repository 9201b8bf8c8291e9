package io.lancepart.spark;

import java.util.Collections;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table by its path; the options ride along unseen, since they may hold credentials. */
final class PathIdentifier implements Identifier {
  private final String path;
  private final Map<String, String> options;
  private final String shown;

  private PathIdentifier(String path, Map<String, String> options) {
    this(path, options, path);
  }

  private PathIdentifier(String path, Map<String, String> options, String shown) {
    this.path = path;
    this.options = Collections.unmodifiableMap(Options.of(options));
    this.shown = shown;
  }

  static PathIdentifier of(CaseInsensitiveStringMap options) {
    String path = options.get("path");
    if (path == null || path.isBlank()) {
      throw new IllegalArgumentException("lancepart reads a table at a path: give it to load(path)");
    }
    if (options.containsKey(Options.PLAIN) || options.containsKey(Options.PLAIN_ROOT)) {
      throw new IllegalArgumentException(
          "option '" + Options.PLAIN + "': names that begin with 'lancepart.' are lancepart's own; leave it out");
    }
    return new PathIdentifier(path, options.asCaseSensitiveMap());
  }

  static PathIdentifier of(String path, Map<String, String> options) {
    Map<String, String> all = Options.of(options);
    all.put("path", path);
    return new PathIdentifier(path, all);
  }

  /** A table that users know by another name than its path. */
  static PathIdentifier named(String shown, String path, Map<String, String> options) {
    return new PathIdentifier(path, of(path, options).options, shown);
  }

  Map<String, String> options() {
    return options;
  }

  String shown() {
    return shown;
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
