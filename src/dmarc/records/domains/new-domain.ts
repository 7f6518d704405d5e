import { newId } from "../../../foundation/base/secrets.ts";
import { nextDnsCheckMs } from "./domain-status.ts";
import type { DomainOwner, DomainRow } from "./domain-store.ts";
import { newToken, testToken } from "./token.ts";

/** No raw report is kept longer. */
export const RETENTION_DAYS_MAX = 3_650;

export interface EnrolmentRequest {
  readonly domain: string;
  readonly label: string | null;
  readonly webhookUrl: string | null;
  readonly recipients: readonly string[];
}

const RETENTION_DAYS = 400;
const RAW_RETENTION_DAYS = 90;

interface NewDomain extends EnrolmentRequest {
  /** By default 90; null: as long as possible. */
  readonly rawRetentionDays?: number | null | undefined;
}

/** The row of a domain enrolled now, with the default settings. `domain` is in lower-case A-labels. */
export const newDomain = (
  { accountId, mode }: DomainOwner,
  { domain, label, webhookUrl, recipients, rawRetentionDays = RAW_RETENTION_DAYS }: NewDomain,
  nowMs: number,
): Omit<DomainRow, "number"> => {
  const identity = { id: newId(), mode, status: "pending", badSinceMs: null, createdAtMs: nowMs } as const;
  const timing = { ...identity, isIndefinite: false, unconfirmedSinceMs: null, enforcedEveryMs: null };
  return {
    ...identity,
    accountId,
    domain,
    token: mode === "test" ? testToken(accountId, domain) : newToken(),
    label,
    monitoringEnabled: true,
    webhookUrl,
    recipients,
    alerts: {},
    alertThresholds: {},
    sourceRules: [],
    digest: "off",
    retentionDays: RETENTION_DAYS,
    rawRetentionDays: Math.min(rawRetentionDays ?? RETENTION_DAYS_MAX, RETENTION_DAYS_MAX),
    sendsMail: null,
    requireAuthenticReports: false,
    storeFailureReports: false,
    failureReportsRedact: true,
    state: null,
    lastCheck: null,
    nextCheckAtMs: nextDnsCheckMs(timing, nowMs),
    usageDay: 0,
    usageBytes: 0,
    lastReportAtMs: null,
    digestDueAtMs: null,
    isUnreviewed: false,
    updatedAtMs: nowMs,
    deletedAtMs: null,
  };
};
