package io.lancepart.spark;

import java.io.IOException;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DeltaWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** Python's writers want all rows of a task at once, Spark's row-level tasks give one at a time: a thread between them. */
final class QueuedRowWriter implements DeltaWriter<InternalRow> {
  private static final Object END = new Object();
  private static final int AHEAD = 4096;
  private static final long PATIENCE_MS = 100;

  private final DataWriter<InternalRow> inner;
  private final InternalRow nothing;
  private final InternalRow nowhere;
  private final BlockingQueue<Object> rows = new ArrayBlockingQueue<>(AHEAD);
  private final Thread thread;
  private volatile Throwable failure;
  private boolean given;

  QueuedRowWriter(DataWriter<InternalRow> inner, int columns, int ids) {
    this.inner = inner;
    this.nothing = new GenericInternalRow(columns);
    this.nowhere = new GenericInternalRow(ids);
    TaskContext context = TaskContext.get();
    this.thread = new Thread(() -> drain(context), "lancepart row writer");
    thread.setDaemon(true);
    thread.start();
  }

  private void drain(TaskContext context) {
    SparkInternals.join(context);
    try {
      inner.writeAll(new Taken());
    } catch (Throwable e) {
      failure = e;
    }
  }

  @Override
  public void insert(InternalRow row) throws IOException {
    give(new JoinedRow(row.copy(), nowhere));
  }

  @Override
  public void delete(InternalRow metadata, InternalRow id) throws IOException {
    give(new JoinedRow(nothing, id.copy()));
  }

  @Override
  public void update(InternalRow metadata, InternalRow id, InternalRow row) throws IOException {
    delete(metadata, id);
    insert(row);
  }

  private void give(InternalRow kept) throws IOException {
    try {
      while (!rows.offer(kept, PATIENCE_MS, TimeUnit.MILLISECONDS)) {
        if (!thread.isAlive()) {
          throw new IOException("the Python writer has stopped", failure);
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted while writing rows", e);
    }
  }

  @Override
  public WriterCommitMessage commit() throws IOException {
    finish();
    if (failure != null) {
      throw new IOException("the Python writer failed: " + failure.getMessage(), failure);
    }
    return inner.commit();
  }

  private void finish() throws IOException {
    boolean first = !given;
    given = true;
    try {
      while (first && thread.isAlive() && !rows.offer(END, PATIENCE_MS, TimeUnit.MILLISECONDS)) {
        Thread.onSpinWait();
      }
      thread.join();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted while writing rows", e);
    }
  }

  @Override
  public void abort() throws IOException {
    inner.abort();
  }

  /** Rows that nobody wants any more are thrown away, so that the thread ends before the task does. */
  @Override
  public void close() throws IOException {
    if (!given) {
      rows.clear();
      finish();
    }
    inner.close();
  }

  /** The rows as they come, until the end. */
  private final class Taken implements Iterator<InternalRow> {
    private Object next;

    @Override
    public boolean hasNext() {
      try {
        next = next == null ? rows.take() : next;
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new IllegalStateException("interrupted while waiting for rows", e);
      }
      return next != END;
    }

    @Override
    public InternalRow next() {
      if (!hasNext()) {
        throw new NoSuchElementException();
      }
      InternalRow row = (InternalRow) next;
      next = null;
      return row;
    }
  }
}
