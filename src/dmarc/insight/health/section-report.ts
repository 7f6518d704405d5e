import {
  type DnsOutcome,
  type DnsResponse,
  isDefinite,
  type DnsResolver,
  type DnsType,
  emptyResponse,
} from "../../../foundation/net/dns.ts";
import { Gate } from "../../../foundation/base/wait.ts";
import { splitRecord } from "../../records/record/record-tags.ts";

/** How much a finding matters: an error breaks authentication or delivery, a warning weakens it, information needs no action. */
export const HEALTH_SEVERITIES = ["error", "warning", "info"] as const;
export type HealthSeverity = (typeof HEALTH_SEVERITIES)[number];

/** `problems`: at least one error. `unknown`: something could not be checked and nothing checked is an error. */
export const HEALTH_STATUSES = ["ok", "warnings", "problems", "unknown"] as const;
export type HealthStatus = (typeof HEALTH_STATUSES)[number];

/** What was observed, what to change, and a TXT record to publish. */
interface FindingDetails {
  readonly observed: string | null;
  readonly fix: string | null;
  readonly record: { host: string; value: string } | null;
}

interface SectionFinding<Code> extends FindingDetails {
  /** Set by `keepLastKnown`. */
  readonly last_known_at: null;
  readonly code: Code;
  readonly severity: HealthSeverity;
  readonly message: string;
}

const OBSERVED_CHARACTERS_MAX = 500;

/** Collects what a check of one section finds, and what it could not find out. Details that are not given are null. */
export class SectionReport<Code extends string> {
  readonly #findings: SectionFinding<Code>[] = [];
  readonly #unchecked: string[] = [];

  /** Findings beyond `findingsMax` are left out. */
  constructor(private readonly findingsMax = Number.POSITIVE_INFINITY) {}

  error(code: Code, message: string, details?: Partial<FindingDetails>): void {
    this.add("error", code, message, details);
  }

  warning(code: Code, message: string, details?: Partial<FindingDetails>): void {
    this.add("warning", code, message, details);
  }

  info(code: Code, message: string, details?: Partial<FindingDetails>): void {
    this.add("info", code, message, details);
  }

  add(severity: HealthSeverity, code: Code, message: string, details: Partial<FindingDetails> = {}): void {
    const isKnown = this.#findings.some((known) => known.code === code && known.message === message);
    if (isKnown || this.#findings.length >= this.findingsMax) return;
    const { observed = null, fix = null, record = null } = details;
    const shown = observed === null ? null : cutText(observed, OBSERVED_CHARACTERS_MAX);
    this.#findings.push({ code, severity, message, observed: shown, fix, record, last_known_at: null });
  }

  /** Something could not be checked; `sentence` says what, and why. */
  leaveUnchecked(sentence: string): void {
    if (!this.#unchecked.includes(sentence)) this.#unchecked.push(sentence);
  }

  /** Whether a response says what is published at its name. If not, the report says why. */
  isAnswered({ name, type, outcome }: Pick<DnsResponse, "name" | "type" | "outcome">): boolean {
    if (isDefinite(outcome) || outcome === "invalid_name") return true;
    this.leaveUnchecked(`Could not be checked: ${OUTCOMES[outcome]} for ${name} ${type}.`);
    return false;
  }

  /** Adds all of another report. */
  include(other: SectionReport<Code>): void {
    for (const { severity, code, message, ...details } of other.#findings) this.add(severity, code, message, details);
    for (const sentence of other.#unchecked) this.leaveUnchecked(sentence);
  }

  /** The fields that all sections have. */
  result() {
    const severities = this.#findings.map(({ severity }) => severity);
    const status: HealthStatus = severities.includes("error")
      ? "problems"
      : this.#unchecked.length > 0
        ? "unknown"
        : severities.includes("warning")
          ? "warnings"
          : "ok";
    return { status, findings: this.#findings, unchecked: this.#unchecked };
  }
}

const OUTCOMES: Readonly<Record<Exclude<DnsOutcome, "response" | "no_data" | "nxdomain">, string>> = {
  unconfirmed: "an unconfirmed empty response",
  servfail: "SERVFAIL",
  refused: "REFUSED",
  timeout: "a DNS timeout",
  malformed: "a malformed DNS response",
  network_error: "no DNS server could be reached",
  cname_loop: "a CNAME loop",
  invalid_name: "an invalid name",
  local_failure: "a local network failure",
  overloaded: "too many DNS queries",
  aborted: "the time limit was reached",
};

/** At most `max` characters of a text from the DNS. */
const cutText = (text: string, max: number) =>
  text.length <= max ? text.toWellFormed() : `${text.slice(0, max).toWellFormed()}…`;

/** A faulty text in a sentence. */
export const quoteText = (text: string): string => `"${cutText(text, 80)}"`;

/** The status of several sections together: errors first, then what could not be checked, then warnings. */
export const worstStatus = (statuses: readonly HealthStatus[]): HealthStatus =>
  (["problems", "unknown", "warnings"] as const).find((status) => statuses.includes(status)) ?? "ok";

/** A resolver for one run: each query is sent once, with a limit on concurrent queries and on all queries. */
export interface HealthDns {
  resolve<T extends DnsType>(name: string, type: T): Promise<DnsResponse<T>>;
}

/** DNS queries of one run. SPF may take 40 of them, 30 selectors one each, ten mail hosts three each. */
export const HEALTH_QUERIES_MAX = 150;
const CONCURRENCY_MAX = 8;

/** The outcome of a query beyond `HEALTH_QUERIES_MAX` is `overloaded`; it is not sent. */
export const createHealthDns = (resolver: DnsResolver): HealthDns => {
  const sent = new Map<string, Promise<DnsResponse>>();
  const gate = new Gate(CONCURRENCY_MAX);
  return {
    resolve<T extends DnsType>(name: string, type: T) {
      const key = `${type} ${name.toLowerCase()}`;
      // The key holds the type, so the response is of that type.
      const known = sent.get(key) as Promise<DnsResponse<T>> | undefined;
      if (known !== undefined) return known;
      if (sent.size >= HEALTH_QUERIES_MAX) return Promise.resolve(emptyResponse(name, type, "overloaded"));
      const response = gate.run(() => resolver.resolve(name, type));
      sent.set(key, response as Promise<DnsResponse>);
      return response;
    },
  };
};

/** The tags of a `name=value;` record by name in lower case; of a tag that stands twice the first. */
export const readTags = (text: string): ReadonlyMap<string, string> => {
  const tags = new Map<string, string>();
  for (const part of splitRecord(text)) {
    if (part.kind === "tag" && !tags.has(part.tag.name)) tags.set(part.tag.name, part.tag.value);
  }
  return tags;
};
