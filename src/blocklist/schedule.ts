import type { TargetRow, TargetStatus } from "./store.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** How often due targets are checked. */
export const PASS_EVERY_MS = MINUTE_MS;
const LISTED_EVERY_MS = HOUR_MS;
const OTHERWISE_EVERY_MS = 6 * HOUR_MS;
const JITTER_SHARE = 0.05;
/** A backlog is spread over this time, listed targets first. */
const LISTED_SPREAD_MS = 15 * MINUTE_MS;
const OTHERWISE_SPREAD_MS = HOUR_MS;

/** A number from 0 to 1 that depends on the id only: the last eight digits of a UUIDv7 are random. */
export const jitterShareOf = (id: string): number => Number.parseInt(id.slice(-8), 16) / 0xff_ff_ff_ff;

/** Retry after the first, second … check in a row that ended `unknown`; the last value for all further ones. */
const UNKNOWN_RETRIES_MS = [2, 5, 10, 20, 40, 60].map((minutes) => minutes * MINUTE_MS);

/** What the time of the next check depends on. */
export type ScheduledTarget = Pick<TargetRow, "id" | "status" | "listedOn" | "unknownChecks">;

const everyMsOf = ({ status, listedOn, unknownChecks }: ScheduledTarget): number => {
  if (status === "unknown") return UNKNOWN_RETRIES_MS[Math.max(0, unknownChecks - 1)] ?? LISTED_EVERY_MS;
  return status === "listed" || listedOn.length > 0 ? LISTED_EVERY_MS : OTHERWISE_EVERY_MS;
};

/**
 * When to check a target again: in about one hour if it has listings, otherwise in six; after `unknown` in minutes, and
 * less often each time. With jitter.
 */
export const nextTargetCheckMs = (target: ScheduledTarget, nowMs: number): number =>
  Math.round(nowMs + everyMsOf(target) * (1 - JITTER_SHARE + 2 * JITTER_SHARE * jitterShareOf(target.id)));

/** The next full minute, when due targets are checked next. */
export const nextPassMs = (nowMs: number): number => (Math.floor(nowMs / PASS_EVERY_MS) + 1) * PASS_EVERY_MS;

/** A new time for one of many overdue targets. */
export const spreadMs = (id: string, status: TargetStatus, nowMs: number): number =>
  Math.round(nowMs + (status === "listed" ? LISTED_SPREAD_MS : OTHERWISE_SPREAD_MS) * jitterShareOf(id));
