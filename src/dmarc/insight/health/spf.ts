import { mostFirst } from "../../../foundation/base/sums.ts";
import { type DnsResponse, isDefinite } from "../../../foundation/net/dns.ts";
import { type HealthDns, SectionReport } from "./section-report.ts";
import {
  reportRepeatedInclude,
  reportSpfAll,
  reportSpfLength,
  reportSpfMissing,
  reportSpfSums,
  type SPF_FINDINGS,
  SPF_LOOKUPS_MAX,
  SpfRecordReport,
} from "./spf-findings.ts";
import { hasMacro, isAlmostSpfText, isSpfText, parseSpfTerms, type SpfQualifier, type SpfTerm } from "./spf-record.ts";

/** Lookups followed in one audit: enough to say how far over the limit a record is. */
const FOLLOWED_MAX = 40;
const TERMS_MAX = 100;
const FINDINGS_MAX = 40;
const LARGEST_MAX = 3;

type Mechanism = Extract<SpfTerm, { kind: "mechanism" }>;
/** What a record ends in: the qualifier of `all`, null without one, `unknown` where a redirect could not be followed. */
type SpfEnd = SpfQualifier | "unknown" | null;

/** The record of a domain, or why there is none to evaluate. */
type SpfEvaluation =
  | { readonly kind: "record"; readonly text: string; readonly all: SpfEnd }
  | { readonly kind: "none"; readonly almost: readonly string[] }
  | { readonly kind: "several" }
  | { readonly kind: "unknown" };

/** A record that is being evaluated. */
interface SpfRecordContext {
  readonly domain: string;
  /** The domains whose records are being evaluated, the audited domain first and this one last. */
  readonly path: readonly string[];
  /** 0 for the audited domain. */
  readonly depth: number;
  readonly record: SpfRecordReport;
}

/**
 * Audits the SPF record of a domain (RFC 7208) as a whole, without a message: every term is followed as if none before it
 * matched, which is what receivers do for a server that is not listed. Counts DNS lookups and void lookups over all includes.
 * Macros are counted and not followed. Never rejects; a DNS failure makes the section `unknown` and is no finding.
 */
export const auditSpf = (dns: HealthDns, domain: string) => new SpfAudit(dns, domain).run();

class SpfAudit {
  readonly #report = new SectionReport<keyof typeof SPF_FINDINGS>(FINDINGS_MAX);
  readonly #terms: { term: string; domain: string; depth: number; lookups: number }[] = [];
  /** How often each domain was included. */
  readonly #includes = new Map<string, number>();
  #lookups = 0;
  #voids = 0;
  /** False when a part of the record could not be followed. */
  #isComplete = true;

  constructor(
    private readonly dns: HealthDns,
    private readonly root: string,
  ) {}

  async run() {
    const root = this.root;
    const report = this.#report;
    const evaluation = await this.#evaluate(root, [], 0);
    const text = evaluation.kind === "record" ? evaluation.text : null;
    const all = evaluation.kind === "record" ? evaluation.all : null;
    if (evaluation.kind === "none") reportSpfMissing(report, root, evaluation.almost);
    if (text !== null) {
      if (all !== "unknown") reportSpfAll(report, root, all, text);
      reportSpfLength(report, root, text);
    }
    const sums = { lookups: this.#lookups, voids: this.#voids, isComplete: this.#isComplete };
    reportSpfSums(report, root, { ...sums, largest: this.#largestTerms() });
    for (const [target, times] of this.#includes) if (times > 1) reportRepeatedInclude(report, root, target, times);
    return {
      code: "spf" as const,
      ...report.result(),
      record: text,
      lookups: text === null ? null : this.#lookups,
      lookups_complete: this.#isComplete,
      void_lookups: this.#voids,
      all: all === "unknown" ? null : all,
      terms: this.#terms,
    };
  }

  /** Evaluates the record of a domain; `path` are the domains that lead to it. */
  async #evaluate(domain: string, path: readonly string[], depth: number): Promise<SpfEvaluation> {
    const response = await this.dns.resolve(domain, "TXT");
    if (!this.#isAnswered(response)) return { kind: "unknown" };
    if (depth > 0 && isDefinite(response.outcome) && response.outcome !== "response") this.#voids += 1;
    const records = response.records.filter(isSpfText);
    const [text] = records;
    if (text === undefined) return { kind: "none", almost: response.records.filter(isAlmostSpfText) };
    const record = new SpfRecordReport(this.#report, this.root, domain);
    if (records.length > 1) {
      record.several(records);
      return { kind: "several" };
    }
    const all = await this.#followTerms(parseSpfTerms(text), { domain, path: [...path, domain], depth, record });
    return { kind: "record", text, all };
  }

  /** What the record ends in: its own `all`, or that of the record it redirects to. */
  async #followTerms(terms: readonly SpfTerm[], context: SpfRecordContext): Promise<SpfEnd> {
    const { domain, record } = context;
    this.#prefetch(domain, terms);
    const seen = new Set<string>();
    let all: SpfEnd = null;
    for (const term of terms) {
      if (term.kind === "fault") record.fault(term);
      if (term.kind === "modifier" && term.name !== "redirect" && term.name !== "exp")
        record.unknownModifier(term.text);
      if (term.kind !== "mechanism") continue;
      const key = term.text.toLowerCase().replace(/^\+/, "");
      if (seen.has(key)) record.duplicate(term.text);
      seen.add(key);
      if (all !== null) record.afterAll(term.text);
      else if (term.mechanism === "all") all = term.qualifier;
      else await this.#followMechanism(term, context);
    }
    const redirect = terms.find((term) => term.kind === "modifier" && term.name === "redirect");
    if (redirect?.kind !== "modifier") return all;
    if (all === null) return this.#followRedirect(redirect, context);
    record.afterAll(redirect.text);
    return all;
  }

  async #followMechanism(term: Mechanism, context: SpfRecordContext) {
    const { mechanism, domainSpec, text } = term;
    if (mechanism === "ip4" || mechanism === "ip6") return;
    const lookup = this.#beginLookup(text, context);
    if (mechanism === "ptr") context.record.ptr(text);
    else if (domainSpec !== null && hasMacro(domainSpec)) this.#skipMacro(text, mechanism === "include", context);
    else if (lookup.isFollowed) {
      const name = nameOf(domainSpec ?? context.domain);
      if (mechanism === "include") await this.#followInclude(term, name, context);
      else await this.#resolveTerm(term, name, context);
    }
    lookup.end();
  }

  #skipMacro(text: string, isNested: boolean, { record }: SpfRecordContext) {
    record.macro(text);
    if (isNested) this.#isComplete = false;
  }

  async #followInclude({ text, qualifier }: Mechanism, target: string, context: SpfRecordContext) {
    const { path, depth, record } = context;
    if (path.includes(target)) return record.loop(text, target);
    this.#includes.set(target, (this.#includes.get(target) ?? 0) + 1);
    const found = await this.#evaluate(target, path, depth + 1);
    if (found.kind === "none") record.targetMissing(text, target);
    if (found.kind === "record" && found.all === "+" && qualifier === "+") record.includesAll(text, target);
  }

  async #followRedirect(
    { text, value }: Extract<SpfTerm, { kind: "modifier" }>,
    context: SpfRecordContext,
  ): Promise<SpfEnd> {
    const { path, depth, record } = context;
    const lookup = this.#beginLookup(text, context);
    const target = nameOf(value);
    let all: SpfEnd = "unknown";
    if (hasMacro(value)) this.#skipMacro(text, true, context);
    else if (path.includes(target)) record.loop(text, target);
    else if (lookup.isFollowed) {
      const found = await this.#evaluate(target, path, depth + 1);
      if (found.kind === "none") record.targetMissing(text, target);
      if (found.kind === "record") all = found.all;
    }
    lookup.end();
    return all;
  }

  /** Sends the queries of `a`, `mx` and `exists`. */
  async #resolveTerm({ mechanism, text }: Mechanism, name: string, { record }: SpfRecordContext) {
    if (mechanism === "mx") {
      const response = await this.dns.resolve(name, "MX");
      if (!this.#isAnswered(response)) return;
      const hosts = response.records.filter(({ exchange }) => exchange !== ".").length;
      record.mxHosts(text, hosts);
      if (hosts > 0) return;
    } else {
      const a = await this.dns.resolve(name, "A");
      if (a.records.length > 0) return;
      const aaaa = mechanism === "a" ? await this.dns.resolve(name, "AAAA") : null;
      if (aaaa !== null && aaaa.records.length > 0) return;
      if (!this.#isAnswered(a) || (aaaa !== null && !this.#isAnswered(aaaa))) return;
    }
    this.#voids += 1;
    record.void(text, name);
  }

  /** Counts a term that causes a lookup, and lists it with all lookups that are counted until `end`. */
  #beginLookup(term: string, { domain, depth }: SpfRecordContext) {
    const before = this.#lookups;
    this.#lookups += 1;
    const isFollowed = before < FOLLOWED_MAX;
    if (!isFollowed) this.#isComplete = false;
    const listed = { term, domain, depth, lookups: 1 };
    if (this.#terms.length < TERMS_MAX) this.#terms.push(listed);
    return {
      isFollowed,
      end: () => {
        listed.lookups = this.#lookups - before;
      },
    };
  }

  /** Sends the first queries of a record together: a record with ten includes takes one round trip, not ten. */
  #prefetch(domain: string, terms: readonly SpfTerm[]) {
    if (this.#lookups > SPF_LOOKUPS_MAX) return;
    for (const term of terms.slice(0, FOLLOWED_MAX)) {
      if (term.kind !== "mechanism" || (term.domainSpec !== null && hasMacro(term.domainSpec))) continue;
      const name = nameOf(term.domainSpec ?? domain);
      if (term.mechanism === "include") void this.dns.resolve(name, "TXT");
      if (term.mechanism === "a" || term.mechanism === "exists") void this.dns.resolve(name, "A");
      if (term.mechanism === "mx") void this.dns.resolve(name, "MX");
    }
  }

  /** The terms of the domain's own record with the most lookups. */
  #largestTerms() {
    return this.#terms
      .filter(({ depth, lookups }) => depth === 0 && lookups > 1)
      .sort(mostFirst("lookups"))
      .slice(0, LARGEST_MAX)
      .map(({ term, lookups }) => `${term} (${lookups})`);
  }

  #isAnswered(response: DnsResponse) {
    const isAnswered = this.#report.isAnswered(response);
    if (!isAnswered) this.#isComplete = false;
    return isAnswered;
  }
}

const nameOf = (spec: string) => spec.toLowerCase().replace(/\.$/, "");
