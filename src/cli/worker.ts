import { workerData } from "node:worker_threads";

/** What a thread of the service does, by the `task` in its data. Each loads only what it needs. */
const TASKS: Readonly<Record<string, () => Promise<unknown>>> = {
  backup: async () => (await import("../foundation/db/backup-worker.ts")).runBackupWorker(),
  checkpoints: async () => (await import("../foundation/db/checkpoint-thread.ts")).runCheckpointThread(),
  "personal data": async () => (await import("../service/erase/personal-data.ts")).runPersonalDataWorker(workerData),
  "mail servers": async () => (await import("../service/mail-thread.ts")).runMailThread(workerData),
  "report reading": async () => (await import("../dmarc/reports/report/reading-thread.ts")).runReadingThread(),
};

export const runWorker = async (): Promise<void> => void (await TASKS[String(workerData.task)]?.());
