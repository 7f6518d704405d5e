import { z } from "zod";
import { isoTime } from "../../../foundation/base/clock.ts";
import { recordHost } from "../record/record-published.ts";
import type { DnsCheckResult } from "./domain-check.ts";
import { type DomainPlatform, reportingAddressOf } from "./domain-platform.ts";
import { dnsRecordSchema, type DnsRecordView } from "./dns-record-schema.ts";
import { type DnsCheck, lastCheckSchema } from "./domain-state.ts";
import type { DomainRow } from "./domain-store.ts";

/**
 * - `in_order`: the record is published, and receivers may send reports.
 * - `not_authorised`: the record is published, but receivers may not send reports to the report host.
 * - `missing`: there is no DMARC record at the domain.
 * - `no_address`: there is one record, without the reporting address.
 * - `conflict`: several records, an alias, or another fault that only the owner can resolve.
 * - `unknown`: the DNS did not respond, or was never checked.
 */
export type PublicationState = "in_order" | "not_authorised" | "missing" | "no_address" | "conflict" | "unknown";

/** What is published for a domain and what is to be, as of the last check of its DNS. */
export interface Publication {
  readonly state: PublicationState;
  /** The name of the record. */
  readonly host: string;
  readonly reportingAddress: string | null;
  /** Null before the first check. */
  readonly checkedAtMs: number | null;
  readonly checks: readonly DnsCheck[];
  /** The record to publish; null when it was not stored: check again. */
  readonly advised: DnsRecordView | null;
  /** Until when resolvers may keep what the check found; null when that is not known. */
  readonly cachedUntilMs: number | null;
}

/** Longer records are read again when they are needed. */
const STORED_CHARACTERS_MAX = 16_384;

/** The last check as it is stored; older versions stored only what the API returns. */
const storedCheckSchema = lastCheckSchema.extend({
  advised: dnsRecordSchema.nullable().default(null).catch(null),
  record_ttl_s: z.number().default(0),
});
type StoredCheck = z.output<typeof storedCheckSchema>;

export const storedCheckOf = (
  { checks, outcome, dnsRecords, recordTtlS }: DnsCheckResult,
  nowMs: number,
): StoredCheck => {
  const advised = dnsRecords[0] ?? null;
  const isShort = advised !== null && JSON.stringify(advised).length <= STORED_CHARACTERS_MAX;
  return {
    at: isoTime(nowMs),
    ok: outcome === "indefinite" ? null : outcome === "good",
    checks: [...checks],
    advised: isShort ? advised : null,
    record_ttl_s: recordTtlS,
  };
};

/** What the last check of a domain says. Sends no DNS query. */
export const publicationOf = (
  { domain, token, lastCheck }: Pick<DomainRow, "domain" | "token" | "lastCheck">,
  platform: Pick<DomainPlatform, "reportHost" | "mailbox">,
): Publication => {
  const base = { host: recordHost(domain), reportingAddress: reportingAddressOf(platform, token) };
  if (lastCheck === null) {
    return { ...base, state: "unknown", checkedAtMs: null, checks: [], advised: null, cachedUntilMs: null };
  }
  const { at, checks, advised, record_ttl_s: ttlS } = storedCheckSchema.parse(JSON.parse(lastCheck));
  const checkedAtMs = Date.parse(at);
  return {
    ...base,
    state: stateOf(checks, advised),
    ...{ checkedAtMs, checks, advised },
    cachedUntilMs: ttlS > 0 ? checkedAtMs + ttlS * 1000 : null,
  };
};

const stateOf = (checks: readonly DnsCheck[], advised: DnsRecordView | null): PublicationState => {
  const okOf = (code: DnsCheck["code"]): boolean | null => checks.find((check) => check.code === code)?.ok ?? null;
  const [record, address, authorised] = [okOf("record"), okOf("reporting_address"), okOf("authorisation")];
  if (record === null || address === null || advised?.reason === "dns_failure") return "unknown";
  if (address && record) return authorised === false ? "not_authorised" : authorised === null ? "unknown" : "in_order";
  if (advised?.action === "conflict") return "conflict";
  return record ? "no_address" : "missing";
};
