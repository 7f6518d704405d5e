import { newId } from "../../base/secrets.ts";
import type { DomainOwner, DomainRow } from "./domain-store.ts";
import { newToken, testToken } from "./token.ts";
import { nextDnsCheckMs } from "./domain-status.ts";

export interface EnrolmentRequest {
  readonly domain: string;
  readonly label: string | null;
  readonly webhookUrl: string | null;
  readonly recipients: readonly string[];
}

/** Domains of test keys are not on the timetable: the end of time, as ISO 8601 can write it. */
export const NEVER_CHECKED_MS = Date.UTC(9999, 0, 1);
const RETENTION_DAYS = 400;
const RAW_RETENTION_DAYS = 90;

/** The row of a domain that is enrolled now, with the settings that hold until its owner says otherwise. `domain` is in lower-case A-labels. */
export const newDomain = (
  { accountId, mode }: DomainOwner,
  order: EnrolmentRequest,
  nowMs: number,
): Omit<DomainRow, "number"> => {
  const { domain, label, webhookUrl, recipients } = order;
  const id = newId();
  const outlook = {
    id,
    status: "pending",
    badSinceMs: null,
    createdAtMs: nowMs,
    isIndefinite: false,
    doubtSinceMs: null,
    enforcedEveryMs: null,
  } as const;
  return {
    id,
    accountId,
    mode,
    domain,
    token: mode === "test" ? testToken(accountId, domain) : newToken(),
    status: "pending",
    label,
    monitoringEnabled: true,
    webhookUrl,
    recipients,
    alerts: {},
    alertThresholds: {},
    sourceRules: [],
    digest: "off",
    retentionDays: RETENTION_DAYS,
    rawRetentionDays: RAW_RETENTION_DAYS,
    sendsMail: null,
    requireAuthenticReports: false,
    storeFailureReports: false,
    failureReportsRedact: true,
    state: null,
    lastCheck: null,
    badSinceMs: null,
    nextCheckAtMs: mode === "test" ? NEVER_CHECKED_MS : nextDnsCheckMs(outlook, nowMs),
    usageDay: 0,
    usageBytes: 0,
    lastReportAtMs: null,
    digestDueAtMs: null,
    isUnreviewed: false,
    createdAtMs: nowMs,
    updatedAtMs: nowMs,
    deletedAtMs: null,
  };
};
