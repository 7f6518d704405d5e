import { Elysia } from "elysia";
import { type Clock, isoTime } from "../base/clock.ts";
import { readWindows } from "../base/walk.ts";
import { AppError } from "../base/errors.ts";
import { isId } from "../base/secrets.ts";
import { readJson } from "../http/body.ts";
import { readIdempotencyKey } from "../http/idempotency-key.ts";
import type { Guard } from "../http/guard.ts";
import { rowsById, sendPage } from "../http/list-page.ts";
import { pageParameters, readPage, readTimeoutS } from "../http/query.ts";
import type { Checks } from "./checks.ts";
import type { Runner } from "./runner.ts";
import { filtersSchema, orderSchema } from "./schemas.ts";
import type { VerificationRow } from "./store.ts";

export interface VerifyRouteDeps {
  readonly guard: Guard;
  readonly checks: Checks;
  readonly runner: Runner;
  readonly clock: Clock;
}

const PATH = "/v1/email-verifications";

const knownId = (id: string | undefined): string => {
  if (id !== undefined && isId(id)) return id;
  throw new AppError("not_found", { message: "There is no such verification." });
};

/** The three verification endpoints of the specification, and the evidence. */
export const createVerifyRoutes = ({ guard, checks, runner, clock }: VerifyRouteDeps) => {
  const wireForm = (row: VerificationRow) => {
    if (row.result !== null) return { id: row.id, status: row.status, result: JSON.parse(row.result) };
    const pollAfterMs = runner.pollAfterMs(row);
    const nextRetryAt = isoTime(clock.nowMs() + pollAfterMs);
    return { id: row.id, status: row.status, poll_after_ms: pollAfterMs, next_retry_at: nextRetryAt };
  };

  return new Elysia({ name: "verify" })
    .use(guard)
    .post(
      PATH,
      async ({ request, caller, set }) => {
        const timeoutS = readTimeoutS(request);
        const { email, source } = await readJson(request, orderSchema);
        const order = { email, source: source ?? null, idempotencyKey: readIdempotencyKey(request) };
        const row = await checks.order(caller, order, timeoutS * 1000, request.signal);
        if (row.status === "pending") {
          set.status = 202;
          set.headers.location = `${PATH}/${row.id}`;
        }
        return wireForm(row);
      },
      { parse: "none", demand: { scope: "verifications:write", rateLimited: true, query: ["timeout"] } },
    )
    .get(
      PATH,
      async ({ request, caller }) => {
        const page = readPage(request, filtersSchema, isId);
        const { sub_status: subStatus, created_after, created_before, ...rest } = page.filters;
        const wanted = { ...rest, subStatus, createdAfterMs: created_after, createdBeforeMs: created_before };
        const view = (row: VerificationRow) => ({
          ...wireForm(row),
          email: row.email,
          source: row.source,
          created_at: isoTime(row.createdAtMs),
        });
        const read = readWindows(checks.list(caller, wanted));
        return sendPage(request, { name: "verifications", page }, rowsById(read, view));
      },
      { demand: { scope: "verifications:read", query: pageParameters(filtersSchema) } },
    )
    .get(
      `${PATH}/:id`,
      async ({ request, params, caller }) => {
        const timeoutS = readTimeoutS(request);
        return wireForm(await checks.poll(caller, knownId(params.id), timeoutS * 1000, request.signal));
      },
      { demand: { scope: "verifications:read", query: ["timeout"] } },
    )
    .get(`${PATH}/:id/evidence`, async ({ params, caller }) => checks.evidence(caller, knownId(params.id)), {
      demand: { scope: "verifications:read" },
    });
};
