import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/secrets.ts";
import type { Db } from "./open.ts";

/** What every use case stands on. Passed whole: `createX(runtime, collaborators)`. */
export interface Runtime {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly random: Random;
}

/** What use cases stand on that neither log nor draw. */
export type DbClock = Pick<Runtime, "db" | "clock">;

/** What use cases stand on that do not draw. */
export type DbClockLog = Omit<Runtime, "random">;
