import { AppError } from "./base/errors.ts";
import type { Runtime } from "./db/runtime.ts";
import { sendText } from "./http/response.ts";
import type { Guard } from "./http/guard.ts";
import { handleOpen, serveRoutes } from "./http/route.ts";
import { COMMIT, VERSION } from "./version.ts";
import { GET_HEALTH, GET_OPENAPI, GET_READINESS } from "./service-operations.ts";

export interface ServiceRouteOptions {
  readonly guard: Guard;
  /** Builds the OpenAPI document; called at its first request. */
  readonly describe: () => Promise<object>;
  /** Why this instance cannot verify addresses, apart from the database; empty when it can. */
  readonly blockers: () => readonly string[];
  /** Problems that need the operator's attention while the service keeps working. */
  readonly findings: () => readonly string[];
}

/** The check writes to the database, and anybody may request it: its result is cached this long. */
const WRITE_CHECK_CACHE_MS = 1_000;

/** The routes that need no key: liveness, readiness and the OpenAPI document. */
export const createServiceRoutes = (
  { db, clock }: Pick<Runtime, "db" | "clock">,
  { guard, describe, blockers, findings }: ServiceRouteOptions,
) => {
  let lastCheck = { atMs: Number.NEGATIVE_INFINITY, isWritable: false };
  const isWritable = (): boolean => {
    const atMs = clock.monotonicMs();
    if (atMs - lastCheck.atMs >= WRITE_CHECK_CACHE_MS) lastCheck = { atMs, isWritable: db.isWritable() };
    return lastCheck.isWritable;
  };
  let document: Promise<string> | null = null;

  return serveRoutes(guard, [
    handleOpen(GET_HEALTH, () => ({ status: "ok", version: VERSION, commit: COMMIT })),

    handleOpen(GET_READINESS, () => {
      const problems = findings();
      const reasons = [...(isWritable() ? [] : ["The database is not writable."]), ...blockers()];
      if (reasons.length > 0)
        throw new AppError("unavailable", {
          message: [...reasons, ...problems].join(" "),
          headers: { "retry-after": "5" },
        });
      return { status: problems.length === 0 ? "ok" : "degraded", findings: problems };
    }),

    handleOpen(GET_OPENAPI, async (request) => {
      document ??= describe().then((described) => JSON.stringify(described));
      return sendText(request, await document, { "content-type": "application/json" });
    }),
  ]);
};
