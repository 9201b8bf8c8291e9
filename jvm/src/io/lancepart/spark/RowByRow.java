package io.lancepart.spark;

import java.io.IOException;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskContext$;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** Python's writers want all rows of a task at once, Spark's row-level tasks give one at a time: a thread between them. */
final class RowByRow implements DataWriter<InternalRow> {
  private static final Object END = new Object();
  private static final int AHEAD = 4096;
  private static final long PATIENCE_MS = 100;

  private final DataWriter<InternalRow> inner;
  private final BlockingQueue<Object> rows = new ArrayBlockingQueue<>(AHEAD);
  private final Thread thread;
  private volatile Throwable failure;
  private boolean given;

  private RowByRow(DataWriter<InternalRow> inner) {
    this.inner = inner;
    TaskContext context = TaskContext.get();
    this.thread = new Thread(() -> drain(context), "lancepart row writer");
    thread.setDaemon(true);
    thread.start();
  }

  private void drain(TaskContext context) {
    TaskContext$.MODULE$.setTaskContext(context);
    try {
      inner.writeAll(new Taken());
    } catch (Throwable e) {
      failure = e;
    }
  }

  @Override
  public void write(InternalRow row) throws IOException {
    InternalRow kept = row.copy();
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

  /** A write whose tasks get their rows one at a time. */
  record Batch(BatchWrite inner) implements BatchWrite {
    @Override
    public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
      return new Factory(inner.createBatchWriterFactory(info));
    }

    @Override
    public boolean useCommitCoordinator() {
      return inner.useCommitCoordinator();
    }

    @Override
    public void onDataWriterCommit(WriterCommitMessage message) {
      inner.onDataWriterCommit(message);
    }

    @Override
    public void commit(WriterCommitMessage[] messages) {
      inner.commit(messages);
    }

    @Override
    public void abort(WriterCommitMessage[] messages) {
      inner.abort(messages);
    }
  }

  record Factory(DataWriterFactory inner) implements DataWriterFactory {
    @Override
    public DataWriter<InternalRow> createWriter(int partition, long task) {
      return new RowByRow(inner.createWriter(partition, task));
    }
  }
}
