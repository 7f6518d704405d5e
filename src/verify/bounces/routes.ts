import type { Clock } from "../../foundation/base/clock.ts";
import { AppError } from "../../foundation/base/errors.ts";
import { backgroundTurn } from "../../foundation/base/fair-queue.ts";
import { JSON_BODY_BYTES_MAX, parseJson, readBytes } from "../../foundation/http/body.ts";
import type { Act, Guard } from "../../foundation/http/guard.ts";
import { rowsById, sendPage } from "../../foundation/http/list-page.ts";
import { attachment, sendJson, sendText, streamRows } from "../../foundation/http/response.ts";
import { handle, serveRoutes } from "../../foundation/http/route.ts";
import { wantsCsv } from "../../foundation/http/row-format.ts";
import { bounceView, summaryCsv, summaryView, writeBounces } from "./bounce-view.ts";
import type { Bounces, EventOutcome } from "./bounces.ts";
import { LIST_BOUNCES, REPORT_BOUNCES, SUMMARIZE_BOUNCES } from "./operations.ts";
import { EVENTS_MAX, isJsonText, readJsonEvents, readLogLines } from "./read-events.ts";

export interface BounceRouteDeps {
  readonly guard: Guard;
  readonly bounces: Bounces;
  readonly clock: Pick<Clock, "nowMs">;
}

const PROBLEMS = {
  too_many_events: `At most ${EVENTS_MAX.toLocaleString("en")} events in one request.`,
  unknown_format:
    "This is no event of Amazon SES, SendGrid, Mailgun or Postmark. Send lines of the log of Postfix as text/plain.",
} as const;

/** For the owner, who confirms a subscription: the response goes to Amazon SNS. */
const ASKED_ONLY: Act<void> = { work: async () => undefined, isRecordedUnchanged: () => true };

const isPlainText = (request: Request): boolean =>
  /^text\/plain\b/i.test(request.headers.get("content-type")?.trim() ?? "");

/** How many events had which outcome. */
export const countOutcomes = (events: readonly EventOutcome[]) => {
  const counts = { stored: 0, known: 0, ignored: 0, unreadable: 0 };
  for (const { outcome } of events) counts[outcome] += 1;
  return counts;
};

export const csvHeaders = (name: string) => ({
  "content-type": "text/csv; charset=utf-8",
  "content-disposition": attachment(name, ".csv"),
  vary: "accept",
});

/** Serves the routes of bounces. */
export const createBounceRoutes = ({ guard, bounces, clock }: BounceRouteDeps) =>
  serveRoutes(guard, [
    handle(REPORT_BOUNCES, async ({ request, caller }) => {
      const bytes = await readBytes(request, JSON_BODY_BYTES_MAX);
      await backgroundTurn(caller.accountId);
      const nowMs = clock.nowMs();
      const log = isPlainText(request) ? new TextDecoder().decode(bytes) : null;
      const read = log === null || isJsonText(log) ? readJsonEvents(parseJson(bytes), nowMs) : readLogLines(log, nowMs);
      if (!read.ok) throw new AppError("Invalid request body", { message: PROBLEMS[read.error] });
      const { confirmation } = read.value;
      const events = await bounces.add(caller, read.value.events);
      if (confirmation !== null && caller.mode === "live")
        await guard.perform(caller, { action: "bounces.subscription", subject: confirmation.url }, ASKED_ONLY);
      return sendJson(request, { counts: countOutcomes(events), events, confirmation });
    }),

    handle(LIST_BOUNCES, ({ query, caller, request }) => {
      const { limit, cursor, bounced_after: fromMs, ...rest } = query;
      const filters = { ...rest, fromMs };
      if (wantsCsv(request)) return streamRows(request, writeBounces(bounces, caller, filters), csvHeaders("bounces"));
      const rows = rowsById(bounces.source(caller, filters), bounceView);
      return sendPage(request, { name: "bounces", page: { limit, cursor } }, rows);
    }),

    handle(SUMMARIZE_BOUNCES, async ({ query: { days }, caller, request }) => {
      const summary = await bounces.summary(caller, days);
      return wantsCsv(request)
        ? sendText(request, summaryCsv(summary), csvHeaders("bounce-summary"))
        : sendJson(request, summaryView(summary, days));
    }),
  ]);
