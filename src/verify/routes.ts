import { type Clock, isoTime } from "../foundation/base/clock.ts";
import type { Caller, Guard } from "../foundation/http/guard.ts";
import { rowsById, sendPage } from "../foundation/http/list-page.ts";
import { sendText } from "../foundation/http/response.ts";
import { handle, handleOpen, serveRoutes } from "../foundation/http/route.ts";
import type { Checks } from "./checks.ts";
import widget from "./forms/widget.js" with { type: "text" };
import type { History } from "./history.ts";
import {
  CREATE_VERIFICATION,
  DELETE_VERIFICATION,
  GET_VERIFICATION,
  GET_WIDGET,
  GET_VERIFICATION_EVIDENCE,
  LIST_VERIFICATIONS,
} from "./operations.ts";
import { resultSchema } from "./result.ts";
import { formViewOf, type Screening } from "./forms/screening.ts";
import type { Runner } from "./runner.ts";
import type { VerificationRow } from "./store.ts";

export interface VerifyRouteDeps {
  readonly guard: Guard;
  readonly screening: Screening;
  readonly checks: Checks;
  readonly history: Pick<History, "source">;
  readonly runner: Runner;
  readonly clock: Clock;
}

/** Pages of all origins may load it; browsers ask for a newer one after an hour. */
const WIDGET_HEADERS = {
  "content-type": "text/javascript; charset=utf-8",
  "cache-control": "public, max-age=3600",
  "access-control-allow-origin": "*",
  "cross-origin-resource-policy": "cross-origin",
};

/** Serves the verification routes. */
export const createVerifyRoutes = ({ guard, screening, checks, history, runner, clock }: VerifyRouteDeps) => {
  const view = (row: VerificationRow) => {
    if (row.result !== null)
      return { id: row.id, status: row.status, result: resultSchema.parse(JSON.parse(row.result)) };
    const pollAfterMs = runner.pollAfterMs(row);
    const nextRetryAt = isoTime(clock.nowMs() + pollAfterMs);
    return { id: row.id, status: row.status, poll_after_ms: pollAfterMs, next_retry_at: nextRetryAt };
  };

  /** A page of anyone gets no more than what its form needs. */
  const viewFor = ({ forms, mode }: Caller, row: VerificationRow) =>
    forms ? formViewOf(view(row), screening.suggestionFor(mode, row.email)) : view(row);

  const listedView = (row: VerificationRow) => ({
    ...view(row),
    email: row.email,
    source: row.source,
    created_at: isoTime(row.createdAtMs),
  });

  return serveRoutes(guard, [
    handleOpen(GET_WIDGET, (request) => sendText(request, widget, WIDGET_HEADERS)),

    handle(CREATE_VERIFICATION, async ({ query, headers, body, caller, request, set }) => {
      if (caller.forms?.check === "domain") {
        const limits = { timeoutMs: query.timeout * 1000, signal: request.signal };
        return { id: null, status: "completed", result: await screening.screen(caller, body.email, limits) };
      }
      const requested = { email: body.email, source: body.source ?? null, idempotencyKey: headers["idempotency-key"] };
      const row = await checks.request(caller, requested, query.timeout * 1000, request.signal);
      if (row.status === "pending") {
        set.status = 202;
        set.headers.location = `${CREATE_VERIFICATION.path}/${row.id}`;
      }
      return viewFor(caller, row);
    }),

    handle(LIST_VERIFICATIONS, ({ query, caller, request }) => {
      const { limit, cursor, sub_status: subStatus, created_after: fromMs, created_before: beforeMs, ...rest } = query;
      const filters = { ...rest, subStatus, fromMs, beforeMs, keyId: caller.keyId };
      const rows = rowsById(history.source(caller, filters), listedView);
      return sendPage(request, { name: "verifications", page: { limit, cursor } }, rows);
    }),

    handle(GET_VERIFICATION, async ({ query, params, caller, request }) =>
      viewFor(caller, await checks.poll(caller, params.id, query.timeout * 1000, request.signal)),
    ),

    handle(GET_VERIFICATION_EVIDENCE, ({ params, caller }) => checks.evidence(caller, params.id)),

    handle(DELETE_VERIFICATION, async ({ params, caller, set }) => {
      await checks.remove(caller, params.id);
      set.status = 204;
    }),
  ]);
};
