import type { DayRange } from "../../base/days.ts";
import type { Tx } from "../../db/open.ts";
import type { AlertThresholds } from "../domains/alert-thresholds.ts";
import type { DmarcAlertStore } from "../domains/alert-store.ts";
import type { DomainRow } from "../domains/domain-store.ts";
import type { Alert } from "../domains/raise.ts";
import type { RecordStore } from "../queries/record-store.ts";
import type { RollupStore } from "../sources/rollup-store.ts";
import type { KeyedSource } from "../sources/source-keys.ts";
import type { Source } from "../sources/source-response.ts";
import type { Learning } from "./learning.ts";
import type { AlertRuleStore } from "./alert-rule-store.ts";

/** One look at a domain. A step of it answers true when something must be looked at again without a new report. */
export interface Review {
  readonly tx: Tx;
  readonly domain: DomainRow;
  readonly nowMs: number;
  readonly today: number;
  /** The days that are news. */
  readonly recent: DayRange;
  readonly learning: Learning;
  readonly thresholds: AlertThresholds;
  /** These three know either all reports or trusted ones only. */
  readonly reading: RollupStore;
  readonly rules: AlertRuleStore;
  /** The sources of a range by their keys, and the stored ones that they consist of, as far as these reports name them. What was read once is kept. */
  readonly shown: (range: DayRange) => ReadonlyMap<string, Source>;
  readonly placed: (range: DayRange) => readonly KeyedSource[];
  readonly alerts: Pick<DmarcAlertStore, "lastRaisedMs" | "listByRule">;
  readonly records: RecordStore;
  /** False when the rule is off, or the same was raised within its cooldown. */
  readonly raise: (alert: Alert) => boolean;
}

/** So many new things at once are alerted one by one, more together. */
const ONE_BY_ONE_MAX = 10;

/** A few one by one, many together. */
export const together = <T>(found: readonly T[]): readonly (readonly T[])[] =>
  found.length > ONE_BY_ONE_MAX ? [found] : found.map((one) => [one]);
