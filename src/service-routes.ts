import { Elysia } from "elysia";
import type { Clock } from "./base/clock.ts";
import { AppError } from "./base/errors.ts";
import type { Db } from "./db/open.ts";
import { sendText } from "./http/answer.ts";
import { type Budgets, holdFor } from "./http/holdings.ts";
import { refuseOtherParameters } from "./http/query.ts";

export interface ServiceRouteDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly budgets: Budgets;
  /** Makes the OpenAPI document, when it is first asked for. */
  readonly describe: () => Promise<object>;
  /** What keeps this instance from verifying addresses, beyond the database; empty when nothing does. */
  readonly blockers: () => readonly string[];
  /** What an operator has to look at while the service goes on working; empty when there is nothing. */
  readonly findings: () => readonly string[];
}

/** A look writes to the database, and anybody may ask: what it found holds for so long. */
const LOOK_EVERY_MS = 1_000;

/** Those who need no key share what one account may hold. */
const NOBODY = "";

const notReady = (reasons: readonly string[]) =>
  new AppError("unavailable", { message: reasons.join(" "), headers: { "retry-after": "5" } });

/** What needs no key: is the process alive, can it work, and what does it offer. */
export const createServiceRoutes = ({ db, clock, budgets, describe, blockers, findings }: ServiceRouteDeps) => {
  let looked = { atMs: Number.NEGATIVE_INFINITY, isWritable: false };
  const isWritable = (): boolean => {
    const atMs = clock.monotonicMs();
    if (atMs - looked.atMs >= LOOK_EVERY_MS) looked = { atMs, isWritable: db.isWritable() };
    return looked.isWritable;
  };
  let document: Promise<string> | null = null;
  return new Elysia({ name: "service" })
    .onBeforeHandle(({ request }) => {
      holdFor(request, NOBODY, budgets);
      refuseOtherParameters(request, []);
    })
    .get("/healthz", async () => ({ status: "ok" }))
    .get("/readyz", async () => {
      const reasons = [...(isWritable() ? [] : ["The database cannot be written."]), ...blockers()];
      if (reasons.length > 0) throw notReady([...reasons, ...findings()]);
      const found = findings();
      return { status: found.length === 0 ? "ok" : "degraded", findings: found };
    })
    .get("/openapi.json", async ({ request }) => {
      document ??= describe().then((described) => JSON.stringify(described));
      return sendText(request, await document, { "content-type": "application/json" });
    });
};
