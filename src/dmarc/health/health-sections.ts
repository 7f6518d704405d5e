import type { HealthFinding, HealthStatus } from "./health-finding.ts";
import type { SpfQualifier } from "./spf-record.ts";

/** What all sections have. The field names are those of the interface. */
interface SectionBase {
  readonly status: HealthStatus;
  readonly findings: readonly HealthFinding[];
  /** A sentence for each thing that the DNS or a server did not say: unknown is not no. */
  readonly unchecked: readonly string[];
}

/** The policy that receivers apply (RFC 9989). */
export interface DmarcSection extends SectionBase {
  readonly code: "dmarc";
  readonly record: string | null;
  /** The domain whose record applies; null when it is the domain's own, or there is none. */
  readonly inherited_from: string | null;
  readonly policy: {
    readonly p: string;
    readonly sp: string;
    readonly np: string;
    readonly pct: number;
    readonly t: string;
  } | null;
}

/** A term of an SPF record, or of one that it includes, that causes DNS lookups. */
export interface SpfLine {
  readonly term: string;
  /** The domain whose record holds it. */
  readonly domain: string;
  /** 0 in the record of the domain itself, 1 in what it includes, and so on. */
  readonly depth: number;
  /** Lookups of the term and of everything below it. */
  readonly lookups: number;
}

export interface SpfSection extends SectionBase {
  readonly code: "spf";
  readonly record: string | null;
  /** DNS lookups by RFC 7208 §4.6.4; null without a record. */
  readonly lookups: number | null;
  /** False when a part could not be followed, so that `lookups` is a minimum. */
  readonly lookups_complete: boolean;
  readonly void_lookups: number;
  /** The qualifier of `all`; null when there is none. */
  readonly all: SpfQualifier | null;
  readonly terms: readonly SpfLine[];
}

/** Why a selector was looked at: seen in reports, named by the caller, or a common one of well-known services. */
export type SelectorOrigin = "reports" | "request" | "common";

export interface DkimKeySummary {
  readonly selector: string;
  /** The domain of `d=`. */
  readonly domain: string;
  readonly origin: SelectorOrigin;
  /** `missing`: no key is published. `unknown`: the DNS did not say. */
  readonly state: "valid" | "revoked" | "invalid" | "missing" | "unknown";
  readonly type: "rsa" | "ed25519" | null;
  readonly bits: number | null;
  readonly testing: boolean;
  /** The target of the first CNAME, which names the service that manages the key; null without one. */
  readonly cname: string | null;
  /** Of the messages in the reports that were looked at; null for selectors that no report names. */
  readonly messages: { readonly passed: number; readonly failed: number } | null;
  /** The last day on which reports name it, as YYYY-MM-DD. */
  readonly last_seen: string | null;
}

export interface DkimSection extends SectionBase {
  readonly code: "dkim";
  readonly keys: readonly DkimKeySummary[];
}

export interface MxSection extends SectionBase {
  readonly code: "mx";
  readonly hosts: ReadonlyArray<{ readonly preference: number; readonly exchange: string }>;
  /** Whether the domain says that it receives no mail (RFC 7505). */
  readonly null_mx: boolean;
}

export interface MtaStsSection extends SectionBase {
  readonly code: "mta_sts";
  readonly record: string | null;
  readonly policy: {
    readonly mode: string | null;
    readonly max_age_s: number | null;
    readonly mx: readonly string[];
  } | null;
}

export interface TlsRptSection extends SectionBase {
  readonly code: "tls_rpt";
  readonly record: string | null;
  readonly rua: readonly string[];
}

export interface BimiSection extends SectionBase {
  readonly code: "bimi";
  readonly record: string | null;
  readonly location: string | null;
  readonly authority: string | null;
}

export type HealthSection =
  DmarcSection | SpfSection | DkimSection | MxSection | MtaStsSection | TlsRptSection | BimiSection;

/** The health of a domain, as the interface shows it. */
export interface DomainHealth {
  readonly domain: string;
  /** ISO 8601 in UTC. */
  readonly checked_at: string;
  readonly status: HealthStatus;
  /** One of each code, in a fixed order. */
  readonly sections: readonly HealthSection[];
}
