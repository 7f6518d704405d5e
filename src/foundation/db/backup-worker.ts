import { dirname } from "node:path";
import { parentPort, Worker, workerData } from "node:worker_threads";
import { err, ok, type Result, errorText } from "../base/errors.ts";
import { describeCopyProblem, type VerifiedCopy, writeBackup } from "./backup.ts";
import { removeAbandonedChecksums, removeAbandonedPartials, removePartial } from "./partial-file.ts";
import { describeDirectoryProblem, isBackupName } from "./backup-directory.ts";

/** What to copy where: paths. */
interface CopyOrder {
  readonly source: string;
  readonly file: string;
}

/** How a copy ended; the error is a sentence. */
export type CopyOutcome = Result<VerifiedCopy, string>;

/** Writes one scheduled backup, after removing what interrupted ones left in the directory. Blocks. */
export const writeScheduledBackup = ({ source, file }: CopyOrder): CopyOutcome => {
  try {
    removeAbandonedPartials(dirname(file), isBackupName);
    removeAbandonedChecksums(dirname(file), isBackupName);
    const written = writeBackup(source, file);
    return written.ok ? ok(written.value) : err(describeCopyProblem(source, file, written.error));
  } catch (error) {
    const isAboutTarget = error instanceof Error && "path" in error && String(error.path).startsWith(dirname(file));
    return err(isAboutTarget ? describeDirectoryProblem(dirname(file), error) : `${file}: ${errorText(error)}.`);
  }
};

/** What the worker thread does, once: `main.ts` starts it. */
export const runBackupWorker = (): void => parentPort?.postMessage(writeScheduledBackup(workerData as CopyOrder));

/**
 * Copies the database in a thread of its own, so that the event loop goes on. Never rejects. When `signal` fires, the
 * outcome is an error and what was written is removed; `program` is the path of `main.ts`; SQLite's call in the thread goes on until it ends or the process does.
 */
export const copyInWorker = async (
  { source, file }: CopyOrder,
  signal: AbortSignal,
  program = Bun.main,
): Promise<CopyOutcome> => {
  const { promise, resolve } = Promise.withResolvers<CopyOutcome>();
  let worker: Worker;
  try {
    worker = new Worker(program, { workerData: { task: "backup", source, file } });
  } catch (error) {
    return err(`${file}: ${errorText(error)}.`);
  }
  const stop = () => {
    void worker.terminate();
    removePartial(file);
    resolve(err(`${file}: stopped before it was complete.`));
  };
  worker.once("message", (outcome: CopyOutcome) => resolve(outcome));
  worker.once("error", (error: unknown) => resolve(err(`${file}: ${errorText(error)}.`)));
  worker.once("exit", () => resolve(err(`${file}: the copying thread ended early.`)));
  signal.addEventListener("abort", stop);
  if (signal.aborted) stop();
  return promise.finally(() => signal.removeEventListener("abort", stop));
};
