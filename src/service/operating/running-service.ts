import { statSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { errorText } from "../../foundation/base/errors.ts";
import { isServerLocked } from "../../foundation/db/database-files.ts";
import { baseUrlOf, type Config } from "../config.ts";
import { LIVENESS_PATH, READINESS_PATH } from "../version.ts";

/** What the service at this machine's address responds. */
interface ServiceResponse {
  readonly version: string;
  readonly isReady: boolean;
  /** Why it is not ready, or what needs attention while it works. */
  readonly findings: readonly string[];
}

const TIMEOUT_MS = 5_000;

const liveSchema = z.object({ status: z.literal("ok"), version: z.string() });
const readySchema = z.object({
  message: z.string().optional(),
  reasons: z.array(z.string()).optional(),
  findings: z.array(z.string()).default([]),
});

const get = (url: string): Promise<Response> =>
  // The certificate is for the public name.
  fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS), redirect: "manual", tls: { rejectUnauthorized: false } });

/** Asks the service that listens at `origin`, such as `http://localhost:8025`; a text says why there is no response. */
const askService = async (origin: string): Promise<ServiceResponse | string> => {
  try {
    const live = liveSchema.safeParse(await (await get(origin + LIVENESS_PATH)).json());
    if (!live.success) return "something else responds there";
    const response = await get(origin + READINESS_PATH);
    const { message, reasons, findings } = readySchema.parse(await response.json());
    const causes = reasons ?? (message === undefined ? [] : [message]);
    return { version: live.data.version, isReady: response.ok, findings: response.ok ? findings : causes };
  } catch (error) {
    return errorText(error);
  }
};

/** The process by the lock of the data directory, and what responds at its port. */
export const readService = async (config: Pick<Config, "dataDir" | "host" | "port" | "tls">) => {
  const lock = join(config.dataDir, "server.lock");
  const isLocked = isServerLocked(lock);
  const url = baseUrlOf({ ...config, baseUrl: null }, config.port);
  const response: ServiceResponse | string = isLocked ? await askService(url) : "stopped";
  // Written when the lock is taken.
  const sinceMs = isLocked ? (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? null) : null;
  return { isLocked, url, response, sinceMs };
};
