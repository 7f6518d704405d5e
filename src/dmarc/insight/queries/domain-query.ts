import { z } from "zod";
import { idParameter } from "../../../foundation/http/route-input.ts";
import type { Clock } from "../../../foundation/base/clock.ts";
import { type DayRange, isoDay } from "../../../foundation/base/days.ts";
import type { Db } from "../../../foundation/db/open.ts";
import type { Caller } from "../../../foundation/http/guard.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import type { RollupStore } from "../sources/rollup-store.ts";
import type { RecordStore } from "./record-store.ts";
import type { ReportQueryStore } from "./report-query-store.ts";
import { readDayRange, type RequestedRange } from "../../../foundation/http/day-range.ts";

/** What the routes that read reports are created with. */
export interface QueryContext {
  readonly db: Db;
  readonly clock: Clock;
  readonly rollups: RollupStore;
  readonly records: RecordStore;
  readonly reports: ReportQueryStore;
  /** The caller's domain; throws `not_found` for one that does not exist or is another account's. */
  readonly findDomain: (caller: Caller, id: string) => DomainRow;
}

export const REPORTS_TAG = "DMARC reports";
export const DOMAIN_PATH = "/v1/dmarc/domains/:id";
export const domainParams = z.object({ id: idParameter("domain") });

/** The name of an exported file: `records-example.com-2026-01-01-2026-01-30.csv`. */
export const exportFileName = (what: string, { domain }: DomainRow, range: DayRange, suffix: string): string =>
  `${what}-${domain.replace(/[^a-z0-9.-]/g, "_")}-${isoDay(range.fromDay)}-${isoDay(range.toDay)}.${suffix}`;

/** The longest range: a little over ten years. */
export const RANGE_DAYS_MAX = 3_660;

/** Whole UTC days, both inclusive; 400 `Invalid query` when the range is longer than `RANGE_DAYS_MAX`. */
export const rangeOf = (requested: RequestedRange, nowMs: number): DayRange =>
  readDayRange(requested, nowMs, RANGE_DAYS_MAX);
