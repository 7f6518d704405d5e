import { isDefinite } from "../../net/dns.ts";
import { type HealthFinding, statusOfFindings } from "./health-finding.ts";
import { type HealthDns, uncheckedSentence } from "./health-dns.ts";
import type { SpfLine, SpfSection } from "./health-sections.ts";
import {
  SPF_LOOKUPS_MAX,
  SPF_MX_HOSTS_MAX,
  spfAfterAll,
  spfAllFindings,
  spfDuplicate,
  spfFault,
  spfIncludesAll,
  spfLengthFindings,
  spfLoop,
  spfMacro,
  spfMissing,
  spfMxHosts,
  type SpfPlace,
  spfPtr,
  spfSeveral,
  spfSumFindings,
  spfTargetMissing,
  spfTargetTwice,
  spfUnknownModifier,
  spfVoid,
} from "./spf-findings.ts";
import { hasMacro, isAlmostSpfText, isSpfText, parseSpfTerms, type SpfQualifier, type SpfTerm } from "./spf-record.ts";

/** Lookups followed in one audit: enough to say how far over the limit a record is. */
const FOLLOWED_MAX = 40;
const LINES_MAX = 100;
/** Findings of one kind of term that are listed. */
const FINDINGS_MAX = 40;
const SHOWN_COSTS = 3;

type Mechanism = Extract<SpfTerm, { kind: "mechanism" }>;

/** What a record ends in: the qualifier of `all`, null without one, `unknown` where a redirect could not be followed. */
type SpfEnd = SpfQualifier | "unknown" | null;

/** What stands at a domain: its record, or why there is none to evaluate. */
type SpfFound =
  | { readonly kind: "record"; readonly text: string; readonly all: SpfEnd }
  | { readonly kind: "none"; readonly almost: readonly string[] }
  | { readonly kind: "several" }
  | { readonly kind: "unknown" };

/**
 * Audits the SPF record of a domain (RFC 7208) as a whole, without a message: every term is followed as if none before it
 * matched, which is what receivers do for a server that is not listed. Counts DNS lookups and void lookups over all includes.
 * Macros are counted and not followed. Never rejects; a DNS failure makes the section `unknown` and is no finding.
 */
export const auditSpf = async (dns: HealthDns, domain: string): Promise<SpfSection> => {
  const walk = new SpfWalk(dns, domain);
  const found = await walk.evaluate(domain, [], 0);
  return walk.finish(found);
};

class SpfWalk {
  private readonly lines: SpfLine[] = [];
  private readonly findings: HealthFinding[] = [];
  private readonly unchecked: string[] = [];
  private readonly targets = new Map<string, number>();
  private lookups = 0;
  private voids = 0;
  /** Whether a part of the record could not be followed. */
  private isPartial = false;

  constructor(
    private readonly dns: HealthDns,
    private readonly root: string,
  ) {}

  /** Evaluates the record of a domain. `path` are the domains that lead to it. */
  async evaluate(domain: string, path: readonly string[], depth: number): Promise<SpfFound> {
    const reply = await this.dns.resolve(domain, "TXT");
    if (this.note(uncheckedSentence(reply))) return { kind: "unknown" };
    if (depth > 0 && isDefinite(reply.outcome) && reply.outcome !== "answer") this.voids += 1;
    const records = reply.records.filter(isSpfText);
    const [text] = records;
    if (text === undefined) return { kind: "none", almost: reply.records.filter(isAlmostSpfText) };
    const place = { root: this.root, domain };
    if (records.length > 1) {
      this.add(spfSeveral(place, records));
      return { kind: "several" };
    }
    const all = await this.followTerms(place, parseSpfTerms(text), { path: [...path, domain], depth });
    return { kind: "record", text, all };
  }

  /** The section, after the record of the domain itself was evaluated. */
  finish(found: SpfFound): SpfSection {
    if (found.kind === "none") this.add(spfMissing(this.root, found.almost));
    if (found.kind === "record") {
      if (found.all !== "unknown")
        for (const finding of spfAllFindings(this.root, found.all, found.text)) this.add(finding);
      for (const finding of spfLengthFindings(this.root, found.text)) this.add(finding);
    }
    const lookups = { count: this.lookups, isLeast: this.isPartial };
    for (const finding of spfSumFindings(this.root, lookups, this.voids, this.costs())) this.add(finding);
    for (const [target, times] of this.targets) if (times > 1) this.add(spfTargetTwice(this.root, target, times));
    return {
      code: "spf",
      status: statusOfFindings(this.findings, this.unchecked),
      findings: this.findings,
      unchecked: this.unchecked,
      record: found.kind === "record" ? found.text : null,
      lookups: found.kind === "record" ? this.lookups : null,
      lookups_complete: !this.isPartial,
      void_lookups: this.voids,
      all: found.kind === "record" && found.all !== "unknown" ? found.all : null,
      terms: this.lines,
    };
  }

  /** The terms of the domain's own record that cost most. */
  private costs(): readonly string[] {
    return this.lines
      .filter(({ depth, lookups }) => depth === 0 && lookups > 1)
      .sort((one, other) => other.lookups - one.lookups)
      .slice(0, SHOWN_COSTS)
      .map(({ term, lookups }) => `${term} (${lookups})`);
  }

  /** What the record ends in: its own `all`, or that of the record it redirects to. */
  private async followTerms(place: SpfPlace, terms: readonly SpfTerm[], at: SpfDepth): Promise<SpfEnd> {
    this.prefetch(place, terms);
    const seen = new Set<string>();
    let all: SpfEnd = null;
    for (const term of terms) {
      if (term.kind === "fault") this.add(spfFault(place, term));
      if (term.kind === "modifier" && term.name !== "redirect" && term.name !== "exp")
        this.add(spfUnknownModifier(place, term.text));
      if (term.kind !== "mechanism") continue;
      const key = term.text.toLowerCase().replace(/^\+/, "");
      if (seen.has(key)) this.add(spfDuplicate(place, term.text));
      seen.add(key);
      if (all !== null) this.add(spfAfterAll(place, term.text));
      else if (term.mechanism === "all") all = term.qualifier;
      else await this.followMechanism(place, term, at);
    }
    const redirect = terms.find((term) => term.kind === "modifier" && term.name === "redirect");
    if (redirect?.kind !== "modifier") return all;
    if (all === null) return this.followRedirect(place, redirect, at);
    this.add(spfAfterAll(place, redirect.text));
    return all;
  }

  private async followMechanism(place: SpfPlace, term: Mechanism, at: SpfDepth): Promise<void> {
    const { mechanism, domainSpec, text } = term;
    if (mechanism === "ip4" || mechanism === "ip6") return;
    const line = this.begin(place, text, at);
    if (mechanism === "ptr") this.add(spfPtr(place, text));
    else if (domainSpec !== null && hasMacro(domainSpec)) this.leaveMacro(place, text, mechanism === "include");
    else if (line.isFollowed) {
      const name = nameOf(domainSpec ?? place.domain);
      if (mechanism === "include") await this.followInclude(place, term, name, at);
      else await this.lookUp(place, term, name);
    }
    line.end();
  }

  private leaveMacro(place: SpfPlace, text: string, isNested: boolean): void {
    this.add(spfMacro(place, text));
    if (isNested) this.isPartial = true;
  }

  private async followInclude(
    place: SpfPlace,
    { text, qualifier }: Mechanism,
    target: string,
    at: SpfDepth,
  ): Promise<void> {
    if (at.path.includes(target)) return this.add(spfLoop(place, text, target));
    this.targets.set(target, (this.targets.get(target) ?? 0) + 1);
    const found = await this.evaluate(target, at.path, at.depth + 1);
    if (found.kind === "none") this.add(spfTargetMissing(place, text, target));
    if (found.kind === "record" && found.all === "+" && qualifier === "+")
      this.add(spfIncludesAll(place, text, target));
  }

  private async followRedirect(
    place: SpfPlace,
    { text, value }: Extract<SpfTerm, { kind: "modifier" }>,
    at: SpfDepth,
  ): Promise<SpfEnd> {
    const line = this.begin(place, text, at);
    const target = nameOf(value);
    let all: SpfEnd = "unknown";
    if (hasMacro(value)) this.leaveMacro(place, text, true);
    else if (at.path.includes(target)) this.add(spfLoop(place, text, target));
    else if (line.isFollowed) {
      const found = await this.evaluate(target, at.path, at.depth + 1);
      if (found.kind === "none") this.add(spfTargetMissing(place, text, target));
      if (found.kind === "record") all = found.all;
    }
    line.end();
    return all;
  }

  /** Sends the queries of `a`, `mx` and `exists`. */
  private async lookUp(place: SpfPlace, { mechanism, text }: Mechanism, name: string): Promise<void> {
    if (mechanism === "mx") {
      const reply = await this.dns.resolve(name, "MX");
      if (this.note(uncheckedSentence(reply))) return;
      const hosts = reply.records.filter(({ exchange }) => exchange !== ".").length;
      if (hosts > SPF_MX_HOSTS_MAX) this.add(spfMxHosts(place, text, hosts));
      if (hosts === 0) this.noteVoid(place, text, name);
      return;
    }
    const a = await this.dns.resolve(name, "A");
    if (a.records.length > 0) return;
    const aaaa = mechanism === "a" ? await this.dns.resolve(name, "AAAA") : null;
    if (aaaa !== null && aaaa.records.length > 0) return;
    if (this.note(uncheckedSentence(a) ?? (aaaa === null ? null : uncheckedSentence(aaaa)))) return;
    this.noteVoid(place, text, name);
  }

  private noteVoid(place: SpfPlace, text: string, name: string): void {
    this.voids += 1;
    this.add(spfVoid(place, text, name));
  }

  /** Counts a term that causes a lookup, and lists it with what is counted until `end`. */
  private begin({ domain }: SpfPlace, term: string, { depth }: SpfDepth): { isFollowed: boolean; end: () => void } {
    const before = this.lookups;
    this.lookups += 1;
    const isFollowed = before < FOLLOWED_MAX;
    if (!isFollowed) this.isPartial = true;
    const at = this.lines.length;
    if (at < LINES_MAX) this.lines.push({ term, domain, depth, lookups: 1 });
    return {
      isFollowed,
      end: () => {
        if (at < LINES_MAX) this.lines[at] = { term, domain, depth, lookups: this.lookups - before };
      },
    };
  }

  /** Sends the first queries of a record together: a record with ten includes takes one round trip, not ten. */
  private prefetch({ domain }: SpfPlace, terms: readonly SpfTerm[]): void {
    if (this.lookups > SPF_LOOKUPS_MAX) return;
    for (const term of terms.slice(0, FOLLOWED_MAX)) {
      if (term.kind !== "mechanism" || (term.domainSpec !== null && hasMacro(term.domainSpec))) continue;
      const name = nameOf(term.domainSpec ?? domain);
      if (term.mechanism === "include") void this.dns.resolve(name, "TXT");
      if (term.mechanism === "a" || term.mechanism === "exists") void this.dns.resolve(name, "A");
      if (term.mechanism === "mx") void this.dns.resolve(name, "MX");
    }
  }

  private note(sentence: string | null): boolean {
    if (sentence === null) return false;
    this.isPartial = true;
    if (!this.unchecked.includes(sentence)) this.unchecked.push(sentence);
    return true;
  }

  private add(finding: HealthFinding): void {
    const isThere = this.findings.some(({ code, message }) => code === finding.code && message === finding.message);
    if (!isThere && this.findings.length < FINDINGS_MAX) this.findings.push(finding);
  }
}

/** Where a walk stands. */
interface SpfDepth {
  /** The domains whose records are being evaluated, the first one first. */
  readonly path: readonly string[];
  readonly depth: number;
}

const nameOf = (spec: string): string => spec.toLowerCase().replace(/\.$/, "");
