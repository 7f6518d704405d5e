import { backgroundTurn } from "../../foundation/base/fair-queue.ts";
import { type DayRange, dayOfTime, daysOfMonth, isoDay, isoMonth, monthBefore } from "../../foundation/base/days.ts";
import type { UsageColumn, UsageStore, UsageSum, RateLimitedEntry } from "./usage-store.ts";
import { AppError } from "../../foundation/base/errors.ts";
import { readDayRange, type RequestedRange } from "../../foundation/http/day-range.ts";
import { csvLine } from "../../foundation/http/csv.ts";
import { Recurring } from "../../foundation/base/recurring.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import type { Owner } from "../../foundation/base/secrets.ts";

/** The longest range of days: a little over a year. */
export const USAGE_DAYS_MAX = 400;

export const USAGE_GROUPS = ["day", "key", "verdict", "sub_status"] as const;
export type UsageGrouping = (typeof USAGE_GROUPS)[number];

/** Verifications of a range of days, single ones and addresses of lists. */
export interface UsageFigures {
  readonly total: number;
  readonly deliverable: number;
  readonly risky: number;
  readonly undeliverable: number;
  /** Requests that the rate limit refused; null where they cannot be told apart: they have no result. */
  readonly rateLimited: number | null;
  /** Credits charged. */
  readonly credits: number;
}

export interface UsageGroup extends UsageFigures {
  /** The day (`YYYY-MM-DD`), the id of the key, the verdict or the sub_status. */
  readonly group: string;
}

export interface UsageReport {
  readonly groups: readonly UsageGroup[];
  readonly total: UsageFigures;
}

/** A range as a request has it: days or a calendar month, or nothing. */
export interface RequestedUsage extends RequestedRange {
  readonly month?: DayRange | undefined;
}

const refuseMonth = (message: string) => new AppError("Invalid query", { issues: [{ path: "month", message }] });

/** The days of a report, at most until today. 400 `Invalid query` as `readDayRange` says, and for a month that conflicts or is to come. */
export const readUsageRange = ({ month, ...days }: RequestedUsage, nowMs: number): DayRange => {
  if (month === undefined) return readDayRange(days, nowMs, USAGE_DAYS_MAX);
  if (days.from !== undefined || days.to !== undefined) throw refuseMonth("Conflicts with from and to");
  const today = dayOfTime(nowMs);
  if (month.fromDay > today) throw refuseMonth("Must not be in the future");
  return { fromDay: month.fromDay, toDay: Math.min(month.toDay, today) };
};

/** How fast credits are spent. */
export interface CreditForecast {
  readonly creditsPerDay: number;
  /** The days that the pace is the mean of; 0 when nothing was verified. */
  readonly days: number;
  /** Whole days; null when no credit was spent. */
  readonly daysLeft: number | null;
}

/** The days that say how fast credits are spent. */
const PACE_DAYS = 30;

const COLUMN_OF: Readonly<Record<UsageGrouping, UsageColumn>> = {
  day: "day",
  key: "keyId",
  verdict: "verdict",
  sub_status: "subStatus",
};

const VERDICT_FIELDS = ["deliverable", "risky", "undeliverable"] as const;

/** Days read in one go: an account with many keys has thousands of sums a month. */
const DAYS_AT_ONCE = 50;

interface Counts {
  total: number;
  deliverable: number;
  risky: number;
  undeliverable: number;
  rateLimited: number | null;
  credits: number;
}

const noCounts = (rateLimited: number | null): Counts => ({
  total: 0,
  deliverable: 0,
  risky: 0,
  undeliverable: 0,
  rateLimited,
  credits: 0,
});

const addSum = (counts: Counts, { verdict, verifications, credits }: UsageSum) => {
  counts.total += verifications;
  counts.credits += credits;
  const field = VERDICT_FIELDS.find((name) => name === verdict);
  if (field !== undefined) counts[field] += verifications;
};

/** Calendar months that can be chosen: ten years of them. */
const MONTHS_MAX = 120;

/** What an account used. */
export class AccountUsage {
  constructor(private readonly store: UsageStore) {}

  /** The calendar months with verifications, `YYYY-MM`, the newest first. */
  months(owner: Owner, nowMs: number): readonly string[] {
    const first = this.store.firstDay(owner);
    if (first === null) return [];
    const months: string[] = [];
    let month = isoMonth(dayOfTime(nowMs));
    for (; months.length < MONTHS_MAX && month >= isoMonth(first); month = monthBefore(month)) months.push(month);
    return months.filter((one) => {
      const days = daysOfMonth(one);
      return days !== null && this.store.hasAny(owner, days);
    });
  }

  /**
   * The verifications of an account and mode in a range of days. By `day` every day of the range has a group, oldest
   * first; other groups are only those with figures, the largest first.
   */
  async report(owner: Owner, range: DayRange, by: UsageGrouping): Promise<UsageReport> {
    const { accountId, mode } = owner;
    const hasRefused = by === "day" || by === "key";
    const groups = new Map<string, Counts>();
    const total = noCounts(0);
    const countsOf = (group: string): Counts => {
      const counts = groups.get(group) ?? noCounts(hasRefused ? 0 : null);
      groups.set(group, counts);
      return counts;
    };
    if (by === "day") for (let day = range.fromDay; day <= range.toDay; day += 1) countsOf(isoDay(day));
    for (let fromDay = range.fromDay; fromDay <= range.toDay; fromDay += DAYS_AT_ONCE) {
      const piece = { fromDay, toDay: Math.min(range.toDay, fromDay + DAYS_AT_ONCE - 1) };
      if (fromDay > range.fromDay) await backgroundTurn(accountId);
      for (const sum of this.store.sums({ accountId, mode }, COLUMN_OF[by], piece)) {
        addSum(countsOf(typeof sum.group === "number" ? isoDay(sum.group) : sum.group), sum);
        addSum(total, sum);
      }
      for (const { day, keyId, requests } of this.store.rateLimited({ accountId, mode }, piece)) {
        total.rateLimited = (total.rateLimited ?? 0) + requests;
        if (!hasRefused) continue;
        const counts = countsOf(by === "day" ? isoDay(day) : keyId);
        counts.rateLimited = (counts.rateLimited ?? 0) + requests;
      }
    }
    const found = [...groups].map(([group, counts]) => ({ group, ...counts }));
    if (by === "day") return { groups: found, total };
    const shown = found.filter((one) => one.total > 0 || one.credits > 0 || (one.rateLimited ?? 0) > 0);
    return { groups: shown.toSorted((a, b) => b.total - a.total || (a.group < b.group ? -1 : 1)), total };
  }

  /** Credits charged in the calendar month of a time, in UTC. */
  async creditsThisMonth(owner: Owner, nowMs: number): Promise<number> {
    const month = daysOfMonth(isoMonth(dayOfTime(nowMs)));
    return month === null ? 0 : (await this.report(owner, month, "verdict")).total.credits;
  }

  /** How long credits will last at the pace of the last 30 days, from the first of them with a verification on. */
  async forecast(owner: Owner, available: number, nowMs: number): Promise<CreditForecast> {
    const toDay = dayOfTime(nowMs);
    const { groups } = await this.report(owner, { fromDay: toDay - PACE_DAYS + 1, toDay }, "day");
    const first = groups.findIndex(({ total, credits }) => total > 0 || credits > 0);
    const days = first < 0 ? 0 : groups.length - first;
    const credits = groups.reduce((sum, one) => sum + one.credits, 0);
    if (credits === 0) return { creditsPerDay: 0, days, daysLeft: null };
    const creditsPerDay = credits / days;
    return { creditsPerDay, days, daysLeft: Math.floor(available / creditsPerDay) };
  }
}

/** The name of an API key, of a user of the dashboard (`user:<id>`), or of the policy service (`policy`); null when it is not known. */
export type NameOfKey = (keyId: string) => string | null;

const FIGURES = ["total", "deliverable", "risky", "undeliverable", "rate_limited", "credits"];

/** A report as CSV: a line for each group, with the name where the groups are keys. */
export const usageCsv = (groups: readonly UsageGroup[], by: UsageGrouping, nameOf: NameOfKey): string => {
  const head = by === "key" ? ["key_id", "key_name"] : [by];
  const lines = groups.map(({ group, total, deliverable, risky, undeliverable, rateLimited, credits }) =>
    csvLine([
      ...(by === "key" ? [group, nameOf(group)] : [group]),
      total,
      deliverable,
      risky,
      undeliverable,
      rateLimited,
      credits,
    ]),
  );
  return csvLine([...head, ...FIGURES]) + lines.join("");
};

/** A request that was refused is in the database after this time at the latest. A crash loses what was not written. */
export const RATE_LIMITED_FLUSH_MS = 5_000;

type Refused = Pick<RateLimitedEntry, "accountId" | "mode" | "keyId">;

/** Counts the requests that the rate limit refuses, in memory, because a refusal must stay cheap. */
export class RateLimitedRequests {
  readonly #writing: Recurring;
  /** One entry for each key and day. */
  #pending = new Map<string, RateLimitedEntry>();

  constructor(
    private readonly runtime: Pick<Runtime, "db" | "clock" | "log">,
    private readonly store: UsageStore,
  ) {
    const name = "counting of rate-limited requests";
    this.#writing = new Recurring(runtime, { name, run: () => this.#flush(), retryMs: RATE_LIMITED_FLUSH_MS });
  }

  count({ accountId, mode, keyId }: Refused) {
    this.#add({ accountId, mode, keyId, day: dayOfTime(this.runtime.clock.nowMs()), requests: 1 });
    this.#writing.within(RATE_LIMITED_FLUSH_MS);
  }

  /** Writes what was counted; later requests are not counted. */
  async stop() {
    await this.#writing.run();
    await this.#writing.stop();
  }

  /** Writes what was counted. When that fails, it is kept for the next time. */
  async #flush(): Promise<null> {
    const pending = this.#pending;
    if (pending.size === 0) return null;
    this.#pending = new Map();
    try {
      await this.runtime.db.commit((tx) => {
        for (const entry of pending.values()) this.store.addRateLimited(tx, entry);
      });
    } catch (error) {
      for (const entry of pending.values()) this.#add(entry);
      throw error;
    }
    return null;
  }

  #add(entry: RateLimitedEntry) {
    const key = `${entry.keyId} ${entry.day}`;
    const requests = (this.#pending.get(key)?.requests ?? 0) + entry.requests;
    this.#pending.set(key, { ...entry, requests });
  }
}
