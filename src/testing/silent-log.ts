import { createLog } from "../base/log.ts";
import { createTestClock } from "./clock.ts";

/** A log that nobody reads. */
export const silentLog = createLog("error", createTestClock(), () => undefined);
