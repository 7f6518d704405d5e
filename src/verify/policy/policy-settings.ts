import { type DnsServer, formatServer } from "../../foundation/net/dns.ts";
import type { SubStatus } from "../result.ts";

/** Where mail servers ask: an address with a port, or the path of a Unix socket. */
export type PolicyAddress = DnsServer | { readonly path: string };

export const formatPolicyAddress = (at: PolicyAddress): string => ("path" in at ? at.path : formatServer(at));

/** Results that may reject a recipient: what the server or DNS says about it does not change by itself. */
export const POLICY_REASONS = [
  "mailbox_not_found",
  "domain_not_found",
  "mailbox_disabled",
  "no_mail_server",
  "null_mx",
] as const satisfies readonly SubStatus[];
export type PolicyReason = (typeof POLICY_REASONS)[number];

/** By reason: the enhanced status code (RFC 3463, RFC 7505) and what is known. */
export const POLICY_TEXTS: Readonly<Record<PolicyReason, readonly [code: string, text: string]>> = {
  mailbox_not_found: ["5.1.1", "known not to exist"],
  domain_not_found: ["5.1.2", "domain known not to exist"],
  mailbox_disabled: ["5.2.1", "mailbox known to be disabled"],
  no_mail_server: ["5.1.2", "domain known to have no mail server"],
  null_mx: ["5.1.10", "domain known to accept no mail"],
};

/** How recipients of outgoing mail are judged. */
export interface PolicySettings {
  /** Null: there is no policy service. */
  readonly policyListen: PolicyAddress | null;
  /** Networks (CIDR) that may ask, beside this machine. */
  readonly policyNetworks: readonly string[];
  /** The name of the account whose results answer; null for the only account. */
  readonly policyAccount: string | null;
  readonly policyMode: "reject" | "warn";
  readonly policyReject: readonly PolicyReason[];
  readonly policyMaxAgeDays: number;
  /** Whether the suppression list rejects. */
  readonly policySuppression: boolean;
  /** Verifications in the background per day; 0: none. */
  readonly policyVerifyPerDay: number;
}
