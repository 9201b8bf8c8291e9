package io.lancepart.spark;

import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** A batch write that changes how tasks write, and leaves the commit to another one. */
interface BatchWriteOver extends BatchWrite {
  BatchWrite inner();

  @Override
  default boolean useCommitCoordinator() {
    return inner().useCommitCoordinator();
  }

  @Override
  default void onDataWriterCommit(WriterCommitMessage message) {
    inner().onDataWriterCommit(message);
  }

  @Override
  default void commit(WriterCommitMessage[] messages) {
    inner().commit(messages);
  }

  @Override
  default void abort(WriterCommitMessage[] messages) {
    inner().abort(messages);
  }
}
