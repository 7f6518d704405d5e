import { workerData } from "node:worker_threads";
import { runBackupWorker } from "../foundation/db/backup-worker.ts";
import { runPersonalDataWorker } from "../service/erase/personal-data.ts";

/** What a thread of the service does, once: copy the database, or read all of it about a person. */
export const runWorker = (): void | Promise<void> =>
  workerData.task === "personal data" ? runPersonalDataWorker(workerData) : runBackupWorker();
