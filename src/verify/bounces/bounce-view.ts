import { isoTime } from "../../foundation/base/clock.ts";
import { errorRate, type KeptPromises } from "./promise-counts.ts";
import { DAY_MS, isoDay } from "../../foundation/base/days.ts";
import type { WalkPage } from "../../foundation/base/walk.ts";
import { csvLine } from "../../foundation/http/csv.ts";
import type { StoredBounce } from "./bounce-store.ts";
import type { HistoryOwner } from "../history-store.ts";
import type { BounceFilters } from "./bounce-store.ts";
import type { Bounces, BounceSummary } from "./bounces.ts";

/** A bounce as the API and the command line show it. */
export const bounceView = (bounce: StoredBounce) => {
  const { id, email, kind, status, diagnostic, source, provider, promised, promisedAtMs, refutedAtMs } = bounce;
  return {
    id,
    email,
    kind,
    status,
    source,
    bounced_at: isoTime(bounce.bouncedAtMs),
    reported_at: isoTime(bounce.createdAtMs),
    provider,
    promised,
    promised_days: promisedAtMs === null ? null : Math.floor((bounce.bouncedAtMs - promisedAtMs) / DAY_MS),
    refuted_at: refutedAtMs === null ? null : isoTime(refutedAtMs),
    diagnostic,
  };
};

const COLUMNS = [
  "email",
  "kind",
  "status",
  "source",
  "bounced_at",
  "reported_at",
  "provider",
  "promised",
  "promised_days",
  "refuted_at",
  "diagnostic",
] as const;

const rowOf = (bounce: StoredBounce) => {
  const view = bounceView(bounce);
  return COLUMNS.map((column) => view[column]);
};

const ROWS_AT_ONCE = 500;

/** Bounces as CSV (UTF-8, header row, CRLF), newest first. Formulas are defused. */
export async function* writeBounces(
  bounces: Pick<Bounces, "page">,
  owner: HistoryOwner,
  filters: BounceFilters,
): AsyncGenerator<Uint8Array, void> {
  yield Buffer.from(csvLine(COLUMNS));
  let before: string | null = null;
  do {
    const window = { before, limit: ROWS_AT_ONCE };
    const page: WalkPage<StoredBounce, string | null> = await bounces.page(owner, filters, window);
    yield Buffer.from(page.rows.map((row) => csvLine(rowOf(row))).join(""));
    before = page.next;
  } while (before !== null);
}

const promisesView = (promises: KeptPromises) => ({
  deliverable_checks: promises.checks,
  deliverable_bounced: promises.bounced,
  error_rate: errorRate(promises),
});

export type PromisesShown = ReturnType<typeof promisesView>;

/** The summary as the API and the command line show it. */
export const summaryView = ({ checksFromDay, total, providers }: BounceSummary, days: number) => ({
  days,
  checks_from: checksFromDay === null ? null : isoDay(checksFromDay),
  total: promisesView(total),
  providers: providers.map(({ promises, ...rest }) => ({ ...rest, ...promisesView(promises) })),
});

/** The summary as CSV. */
export const summaryCsv = ({ providers }: BounceSummary): string =>
  [
    csvLine([
      "provider",
      "deliverable",
      "risky",
      "undeliverable",
      "not_verified",
      "soft",
      "deliverable_checks",
      "deliverable_bounced",
      "error_rate",
    ]),
    ...providers.map(({ provider, hard, soft, promises: { checks, bounced }, promises }) =>
      csvLine([
        provider,
        hard.deliverable,
        hard.risky,
        hard.undeliverable,
        hard.not_verified,
        soft,
        checks,
        bounced,
        errorRate(promises),
      ]),
    ),
  ].join("");
