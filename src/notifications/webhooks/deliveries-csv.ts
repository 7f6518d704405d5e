import { isoTime } from "../../foundation/base/clock.ts";
import { csvLine } from "../../foundation/http/csv.ts";
import type { Delivery, DeliveryFilters, WebhookOwner } from "./delivery-store.ts";
import type { Webhooks } from "./webhooks.ts";

const ROWS_AT_ONCE = 250;
const COLUMNS = [
  ...["id", "event_id", "type", "subject", "url", "status", "attempts", "created_at", "next_attempt_at"],
  ...["finished_at", "last_attempt_at", "last_http_status", "last_problem"],
];

const timeCell = (ms: number | null): string | null => (ms === null ? null : isoTime(ms));

const deliveryLine = (row: Delivery): string =>
  csvLine([
    ...[row.id, row.eventId, row.type, row.subject, row.url, row.status, row.attempts, isoTime(row.createdAtMs)],
    ...[timeCell(row.dueAtMs), timeCell(row.finishedAtMs), timeCell(row.lastAttemptAtMs)],
    ...[row.lastHttpStatus, row.lastProblem],
  ]);

/** Every delivery that matches as CSV, newest first. Formulas are defused. */
export async function* writeDeliveries(
  webhooks: Pick<Webhooks, "page">,
  owner: WebhookOwner,
  filters: DeliveryFilters,
): AsyncGenerator<Uint8Array, void> {
  yield Buffer.from(csvLine(COLUMNS));
  for (let before: string | null = null; ;) {
    const { rows, next }: Awaited<ReturnType<Webhooks["page"]>> = await webhooks.page(owner, filters, {
      ...{ before, limit: ROWS_AT_ONCE },
    });
    yield Buffer.from(rows.map(deliveryLine).join(""));
    if (next === null) return;
    before = next;
  }
}
