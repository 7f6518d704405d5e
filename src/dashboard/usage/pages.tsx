import { z } from "zod";
import { dayOfTime, daysOfMonth, isoDay, isoMonth } from "../../foundation/base/days.ts";
import { type Clock, isoTime } from "../../foundation/base/clock.ts";
import type { Balance, Ledger, LedgerEntry } from "../../accounts/billing/store.ts";
import { parseDay } from "../../foundation/http/day-range.ts";
import { sendText, streamRows, attachment } from "../../foundation/http/response.ts";
import {
  type AccountUsage,
  USAGE_DAYS_MAX,
  USAGE_GROUPS,
  type UsageGrouping,
  type NameOfKey,
  usageCsv,
} from "../../accounts/usage/account-usage.ts";
import { page } from "../page.ts";
import type { Viewer } from "../visit.ts";
import { type CreditFacts, UsagePage, type UsagePeriod } from "./usage-page.tsx";
import { csvLine } from "../../foundation/http/csv.ts";

export interface UsagePageUseCases {
  readonly usage: AccountUsage;
  readonly ledger: Ledger;
  readonly nameOf: NameOfKey;
  readonly clock: Pick<Clock, "nowMs">;
}

const RANGES = [7, 30, 90, 365] as const;
const GRANTS_SHOWN = 20;
const GRANTS_EXPORTED_AT_ONCE = 500;

const dayText = z.string().refine((text) => parseDay(text) !== null);

const rangeQuery = z.object({
  days: z.enum(RANGES.map(String)).optional(),
  from: dayText.optional(),
  to: dayText.optional(),
  month: z
    .string()
    .refine((text) => daysOfMonth(text) !== null)
    .optional(),
});

type RangeQuery = z.output<typeof rangeQuery>;

/** A calendar month until today; null without one, and for one that is to come. */
const monthOf = (month: string, today: number): UsagePeriod | null => {
  const days = daysOfMonth(month);
  if (days === null || days.fromDay > today) return null;
  return { range: { fromDay: days.fromDay, toDay: Math.min(days.toDay, today) }, month, chosen: null };
};

/** A calendar month, from and to where both make sense, the last `days`, otherwise this month. Never an error. */
const periodOf = ({ days, from = "", to = "", month = "" }: RangeQuery, nowMs: number): UsagePeriod => {
  const today = dayOfTime(nowMs);
  const [first, last] = [parseDay(from), parseDay(to)];
  const toDay = Math.min(last ?? today, today);
  const isRange = first !== null && first <= toDay;
  const isOpened = !isRange && days === undefined;
  const shown = monthOf(month, today) ?? (isOpened ? monthOf(isoMonth(today), today) : null);
  if (shown !== null) return shown;
  const fromDay = isRange ? Math.max(first, toDay - USAGE_DAYS_MAX + 1) : toDay - Number(days) + 1;
  return { range: { fromDay, toDay }, month: null, chosen: isRange ? null : Number(days) };
};

const csvHeaders = (name: string) => ({
  "content-type": "text/csv; charset=utf-8; header=present",
  "content-disposition": attachment(name, ".csv"),
  "cache-control": "no-store",
});

const creditsOf = async (
  { usage, ledger }: Pick<UsagePageUseCases, "usage" | "ledger">,
  owner: { readonly accountId: string; readonly mode: Viewer["mode"] },
  { before, nowMs }: { readonly before: number | null; readonly nowMs: number },
): Promise<CreditFacts> => {
  const balance: Balance = ledger.balance(owner.accountId);
  const grants = ledger.grants(owner.accountId, { before, limit: GRANTS_SHOWN + 1 });
  const shown = grants.slice(0, GRANTS_SHOWN);
  return {
    balance,
    grants: shown,
    next: grants.length > GRANTS_SHOWN ? (shown.at(-1)?.id ?? null) : null,
    forecast: await usage.forecast(owner, balance.available, nowMs),
  };
};

async function* writeGrants(ledger: Ledger, accountId: string): AsyncGenerator<Uint8Array, void> {
  yield Buffer.from(grantsCsv.head);
  for (let before: number | null = null; ;) {
    const grants: ReturnType<Ledger["grants"]> = ledger.grants(accountId, { before, limit: GRANTS_EXPORTED_AT_ONCE });
    if (grants.length === 0) return;
    yield Buffer.from(grants.map(grantsCsv.line).join(""));
    before = grants.at(-1)?.id ?? null;
  }
}

/** The pages about what an account used. */
export const createUsagePages = (useCases: UsagePageUseCases) => {
  const { usage, ledger, nameOf, clock } = useCases;

  const factsOf = async (viewer: Viewer, query: RangeQuery & { readonly cursor?: number | undefined }) => {
    const nowMs = clock.nowMs();
    const period = periodOf(query, nowMs);
    const { range } = period;
    const owner = { accountId: viewer.account.id, mode: viewer.mode };
    const [days, keys, reasons] = [
      await usage.report(owner, range, "day"),
      await usage.report(owner, range, "key"),
      await usage.report(owner, range, "sub_status"),
    ];
    const credits =
      viewer.mode === "test" ? null : await creditsOf(useCases, owner, { before: query.cursor ?? null, nowMs });
    const months = { months: usage.months(owner, nowMs), thisMonth: isoMonth(dayOfTime(nowMs)) };
    return { days, keys, reasons, credits, ...period, ...months };
  };

  return [
    page(
      { path: "/usage", query: rangeQuery.extend({ cursor: z.coerce.number().int().positive().optional() }) },
      async ({ viewer, query }) => {
        const facts = await factsOf(viewer, query);
        const body = <UsagePage {...facts} {...{ ranges: RANGES, nameOf }} />;
        return { title: "Usage", section: "usage", body };
      },
    ),

    page(
      { path: "/usage/csv/:by", params: z.object({ by: z.enum(USAGE_GROUPS) }), query: rangeQuery },
      async ({ request, viewer, params, query }) => {
        const by: UsageGrouping = params.by;
        const { range } = periodOf(query, clock.nowMs());
        const { groups } = await usage.report({ accountId: viewer.account.id, mode: viewer.mode }, range, by);
        const name = `usage-by-${by.replace("_", "-")}-${isoDay(range.fromDay)}-to-${isoDay(range.toDay)}`;
        return sendText(request, usageCsv(groups, by, nameOf), csvHeaders(name));
      },
    ),

    page({ path: "/usage/credits.csv" }, ({ request, viewer }) =>
      streamRows(request, writeGrants(ledger, viewer.account.id), csvHeaders("credits-granted")),
    ),
  ];
};

/** Granted credits as CSV. */
const grantsCsv = {
  head: csvLine(["granted_at", "credits", "note"]),
  line: ({ atMs, available, note }: Pick<LedgerEntry, "atMs" | "available" | "note">): string =>
    csvLine([isoTime(atMs), available, note]),
};
