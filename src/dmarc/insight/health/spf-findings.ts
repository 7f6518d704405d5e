import { type FindingText, quoteText, type SectionReport } from "./section-report.ts";
import type { SpfTerm } from "./spf-record.ts";

/** RFC 7208 §4.6.4: terms that cause DNS queries, void lookups, and hosts of one `mx`. */
export const SPF_LOOKUPS_MAX = 10;
const VOIDS_MAX = 2;
const MX_HOSTS_MAX = 10;
const LOOKUPS_NEAR = 9;
/** RFC 7208 §3.4: so that a response fits into 512 octets. */
const RECORD_OCTETS_ADVISED = 450;

/** The DNS lookups of a whole evaluation. */
export interface SpfSums {
  readonly lookups: number;
  readonly voids: number;
  /** False where a part of the record could not be followed, so that `lookups` is a minimum. */
  readonly isComplete: boolean;
  /** The terms with the most lookups. */
  readonly largest: readonly string[];
}

/** Reports what is wrong with one SPF record of an audit. `root` is the audited domain, `domain` the one whose record it is. */
export class SpfRecordReport {
  constructor(
    private readonly report: SectionReport,
    private readonly root: string,
    private readonly domain: string,
  ) {}

  fault({ text, code, problem }: Extract<SpfTerm, { kind: "fault" }>): void {
    this.report.error({
      ...this.#term(text, `Correct or remove ${quoteText(text)} in the TXT record of ${this.domain}.`),
      code,
      message: `${this.#record()} is invalid: the term ${quoteText(text)} ${problem}; receivers return permerror and SPF never passes.`,
    });
  }

  unknownModifier(text: string): void {
    this.report.info({
      ...this.#term(text, `Remove ${quoteText(text)} unless a receiver asked for it.`),
      code: "spf_unknown_modifier",
      message: `${this.#record()} has the unknown modifier ${quoteText(text)}, which receivers ignore.`,
    });
  }

  afterAll(text: string): void {
    this.report.warning({
      ...this.#term(text, `Move ${quoteText(text)} in front of "all", or remove it.`),
      code: "spf_after_all",
      message: `${this.#record()} has ${quoteText(text)} behind "all", where receivers never read it.`,
    });
  }

  ptr(text: string): void {
    this.report.warning({
      ...this.#term(text, `Replace ${quoteText(text)} by the addresses themselves (ip4:, ip6:, a:).`),
      code: "spf_ptr",
      message: `${this.#record()} uses ${quoteText(text)}; ptr is slow and unreliable, and RFC 7208 section 5.5 says not to use it.`,
    });
  }

  macro(text: string): void {
    this.report.info({
      code: "spf_macro",
      message: `${this.#record()} uses the macro term ${quoteText(text)}, which depends on each message and was not followed.`,
      observed: text,
    });
  }

  void(text: string, name: string): void {
    this.report.warning({
      ...this.#term(text, `Remove ${quoteText(text)}, or publish the missing record at ${name}.`),
      code: "spf_void",
      message: `${this.#record()} uses ${quoteText(text)}, but the DNS has no such record at ${name}.`,
    });
  }

  /** Too many hosts of one `mx` are an error. */
  mxHosts(text: string, hosts: number): void {
    if (hosts <= MX_HOSTS_MAX) return;
    this.report.error({
      ...this.#term(text, `Replace ${quoteText(text)} by the addresses of the hosts that send mail (ip4:, ip6:).`),
      code: "spf_mx_hosts",
      message: `${this.#record()} uses ${quoteText(text)}, which has ${hosts} MX hosts; receivers return permerror above ${MX_HOSTS_MAX}.`,
      observed: String(hosts),
    });
  }

  targetMissing(text: string, target: string): void {
    this.report.error({
      ...this.#term(text, `Remove ${quoteText(text)}, or correct the name if the service still sends for you.`),
      code: "spf_target_missing",
      message: `${this.#record()} uses ${quoteText(text)}, but ${target} has no SPF record; receivers return permerror.`,
    });
  }

  several(texts: readonly string[]): void {
    this.report.error({
      ...this.#term(texts.join("\n"), `Merge them into one TXT record at ${this.domain} and remove the others.`),
      code: "spf_several",
      message: `${this.domain} has ${texts.length} SPF records; receivers return permerror and SPF never passes.`,
    });
  }

  loop(text: string, target: string): void {
    this.report.error({
      ...this.#term(text, `Remove ${quoteText(text)} from the record of ${this.domain}.`),
      code: "spf_loop",
      message: `${this.#record()} uses ${quoteText(text)}, which leads back to ${target}; receivers return permerror.`,
    });
  }

  includesAll(text: string, target: string): void {
    this.report.error({
      ...this.#term(text, `Remove ${quoteText(text)}: the record of ${target} authorizes everybody.`),
      code: "spf_pass_all",
      message: `${this.#record()} uses ${quoteText(text)}, whose record ends in +all: every server on the internet passes SPF for ${this.root}.`,
    });
  }

  duplicate(text: string): void {
    this.report.info({
      ...this.#term(text, `Remove the second ${quoteText(text)}.`),
      code: "spf_duplicate",
      message: `${this.#record()} contains ${quoteText(text)} more than once.`,
    });
  }

  #record(): string {
    return this.root === this.domain ? `The SPF record of ${this.domain}` : `The included SPF record of ${this.domain}`;
  }

  /** What was observed, and who has to change it: the owner, or the service behind an include. */
  #term(observed: string, fix: string): Pick<FindingText, "observed" | "fix"> {
    return this.root === this.domain
      ? { observed, fix }
      : { observed, fix: `Ask the operator of ${this.domain} to correct the record, or remove the include.` };
  }
}

/** What the DNS lookups of a whole evaluation show. */
export const reportSpfSums = (report: SectionReport, root: string, sums: SpfSums): void => {
  const { lookups, voids, isComplete, largest } = sums;
  const count = `${isComplete ? "" : "at least "}${lookups}`;
  const most = largest.length === 0 ? "" : ` Most of them come from ${largest.join(", ")}.`;
  if (lookups > SPF_LOOKUPS_MAX) {
    report.error({
      code: "spf_lookups",
      message: `The SPF record of ${root} needs ${count} DNS lookups; receivers stop after ${SPF_LOOKUPS_MAX} and return permerror.${most}`,
      observed: count,
      fix: `Remove includes of services that no longer send, replace a and mx by ip4: and ip6:, or move a service to a subdomain with an SPF record of its own, until at most ${SPF_LOOKUPS_MAX} lookups are left.`,
    });
  } else if (lookups >= LOOKUPS_NEAR) {
    report.info({
      code: "spf_lookups_near",
      message: `The SPF record of ${root} needs ${count} of ${SPF_LOOKUPS_MAX} DNS lookups; one more service may break it.${most}`,
      observed: count,
      fix: "Remove includes of services that no longer send before you add another one.",
    });
  }
  if (voids > VOIDS_MAX) {
    report.error({
      code: "spf_void_lookups",
      message: `${voids} DNS lookups of the SPF record of ${root} find nothing; receivers may return permerror above ${VOIDS_MAX}.`,
      observed: String(voids),
      fix: "Remove the terms that name hosts or records that no longer exist.",
    });
  }
};

/** A domain that several records include. */
export const reportRepeatedInclude = (report: SectionReport, root: string, target: string, times: number): void =>
  report.info({
    code: "spf_duplicate",
    message: `${target} is included ${times} times below the SPF record of ${root}, and counts as a DNS lookup each time.`,
    observed: target,
    fix: `Remove all but one include that leads to ${target}.`,
  });

/** How the record of the domain itself ends. `all` is null without `all`. */
export const reportSpfAll = (report: SectionReport, root: string, all: string | null, record: string): void => {
  if (all === "+") {
    report.error({
      code: "spf_pass_all",
      message: `The SPF record of ${root} ends in +all: every server on the internet passes SPF for ${root}.`,
      observed: record,
      fix: `Replace "+all" by "-all" (or "~all" while you are still looking for senders).`,
    });
  } else if (all === "?") {
    report.warning({
      code: "spf_neutral_all",
      message: `The SPF record of ${root} ends in ?all, which says nothing about servers that are not listed.`,
      observed: record,
      fix: `Replace "?all" by "~all" or "-all".`,
    });
  } else if (all === null) {
    report.warning({
      code: "spf_no_all",
      message: `The SPF record of ${root} has neither "all" nor a redirect, so servers that are not listed are neutral.`,
      observed: record,
      fix: `Add "~all" or "-all" at the end of the record.`,
    });
  }
};

export const reportSpfLength = (report: SectionReport, root: string, record: string): void => {
  const octets = new TextEncoder().encode(record).length;
  if (octets <= RECORD_OCTETS_ADVISED) return;
  report.info({
    code: "spf_too_long",
    message: `The SPF record of ${root} has ${octets} octets; above ${RECORD_OCTETS_ADVISED} a response may not fit into a small DNS packet (RFC 7208 section 3.4).`,
    observed: String(octets),
    fix: "Move a part of the record to a name of its own and include that name.",
  });
};

/** No record at the domain itself: `almost` are texts that were probably meant as one. */
export const reportSpfMissing = (report: SectionReport, root: string, almost: readonly string[]): void => {
  const [text] = almost;
  if (text !== undefined) {
    report.error({
      code: "spf_not_recognized",
      message: `${root} has the TXT record ${quoteText(text)}, which is not an SPF record: it must begin with "v=spf1 ".`,
      observed: text,
      fix: `Publish the record again without quotation marks, beginning with "v=spf1" and a space.`,
    });
    return;
  }
  report.error({
    code: "spf_missing",
    message: `${root} has no SPF record, so SPF never passes for it.`,
    fix: `Publish a TXT record at ${root} that lists the servers and services that send for it, such as "v=spf1 mx ~all"; "v=spf1 -all" if it sends no mail.`,
  });
};
