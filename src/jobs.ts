import { cron } from "@elysiajs/cron";
import { Elysia } from "elysia";
import type { Log } from "./base/log.ts";

/** One line of the table: what is done when. `pattern` is a cron expression in UTC; a run that is late is skipped, not doubled. */
interface Job {
  readonly name: string;
  readonly pattern: string;
  readonly run: () => Promise<unknown>;
}

export interface JobDeps {
  readonly log: Log;
  readonly forgetOldIdempotency: () => Promise<unknown>;
}

const jobsOf = ({ forgetOldIdempotency }: JobDeps): readonly Job[] => [
  { name: "forget old idempotency keys", pattern: "17 * * * *", run: forgetOldIdempotency },
];

/** The cron table. The jobs tick from the moment the plugin is made; `stop` ends them. */
export const createJobs = (deps: JobDeps) => {
  const jobs = jobsOf(deps);
  const plugin = new Elysia({ name: "jobs" });
  for (const { name, pattern, run } of jobs) {
    plugin.use(
      cron({
        name,
        pattern,
        timezone: "UTC",
        protect: true,
        catch: (cause) => deps.log.error("a job failed", { job: name, cause }),
        run: async () => void (await run()),
      }),
    );
  }
  const { cron: timersByName = {} } = plugin.store as { cron?: Record<string, { stop(): void }> };
  const timers = Object.values(timersByName);
  return {
    plugin,
    stop: () => {
      for (const timer of timers) timer.stop();
    },
  };
};
