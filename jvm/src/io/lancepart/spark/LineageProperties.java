package io.lancepart.spark;

import java.util.AbstractMap;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The properties of a table, and two that OpenLineage reads of each: the store and the path that identify it, whatever
 * catalog it was found in. They are found by their names alone, so that DESCRIBE and SHOW CREATE TABLE do not show them.
 */
final class LineageProperties extends AbstractMap<String, String> {
  private static final String NAMESPACE = "openlineage.dataset.namespace";
  private static final String NAME = "openlineage.dataset.name";
  private static final Pattern STORE = Pattern.compile("([A-Za-z][A-Za-z0-9+.-]*://[^/]+)/*(.*?)/*");
  private static final Pattern FILE = Pattern.compile("(?:file:(?://)?)?(/.*?|[^:]*?)/*");

  private final Map<String, String> shown;
  private final Map<String, String> found;

  LineageProperties(Map<String, String> shown, String path) {
    this.shown = shown;
    Matcher store = STORE.matcher(path);
    Matcher file = FILE.matcher(path);
    this.found = store.matches() ? Map.of(NAMESPACE, store.group(1), NAME, store.group(2))
        : file.matches() ? Map.of(NAMESPACE, "file", NAME, file.group(1))
        : Map.of();
  }

  @Override
  public Set<Entry<String, String>> entrySet() {
    return shown.entrySet();
  }

  @Override
  public String get(Object key) {
    return shown.containsKey(key) ? shown.get(key) : found.get(key);
  }

  @Override
  public boolean containsKey(Object key) {
    return shown.containsKey(key) || found.containsKey(key);
  }
}
