import { newId } from "../base/secrets.ts";
import type { DomainRow } from "../dmarc/domains/domain-store.ts";

/** An active live domain of `account` as the store takes it, with what a test wants to differ. Its times are 0. */
export const madeDomain = (change: Partial<DomainRow> = {}): Omit<DomainRow, "number"> => ({
  id: newId(),
  accountId: "account",
  mode: "live",
  domain: "example.com",
  token: newId(),
  status: "active",
  label: null,
  monitoringEnabled: true,
  webhookUrl: null,
  recipients: [],
  alerts: {},
  digest: "off",
  retentionDays: 400,
  rawRetentionDays: 90,
  sendsMail: null,
  requireAuthenticReports: false,
  state: null,
  lastCheck: null,
  badSinceMs: null,
  nextCheckAtMs: 0,
  lastReportAtMs: null,
  digestDueAtMs: null,
  isUnreviewed: false,
  createdAtMs: 0,
  updatedAtMs: 0,
  deletedAtMs: null,
  ...change,
});
