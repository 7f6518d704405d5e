import { quoteText, type SectionReport } from "./section-report.ts";
import type { SpfTerm } from "./spf-record.ts";

const NO_SPF =
  "Without a working SPF record, receivers cannot tell your servers from others by their address, and DMARC depends on DKIM alone.";
const PERMERROR = "When evaluation ends in permerror, SPF passes for no mail at all, whichever server sent it.";
const SPF_OPEN = "SPF then says nothing against forged mail, or even vouches for it.";
const SPF_WASTE = "Receivers stop after 10 DNS lookups; what is wasted is missing when you add a service.";

/** The findings about SPF, with why each matters. */
export const SPF_FINDINGS = {
  spf_missing: NO_SPF,
  spf_several: PERMERROR,
  spf_not_recognized: NO_SPF,
  spf_syntax: PERMERROR,
  spf_unknown_mechanism: PERMERROR,
  spf_unknown_modifier: "Receivers ignore the modifier.",
  spf_lookups: PERMERROR,
  spf_lookups_near:
    "A service that you include can add lookups at any time, and then SPF stops working for all your mail.",
  spf_void_lookups: PERMERROR,
  spf_void: "Receivers return permerror after 2 lookups that find nothing.",
  spf_mx_hosts: PERMERROR,
  spf_ptr: "Receivers may skip ptr, so mail that depends on it passes at some of them only.",
  spf_pass_all: SPF_OPEN,
  spf_neutral_all: SPF_OPEN,
  spf_no_all: SPF_OPEN,
  spf_target_missing: PERMERROR,
  spf_loop: PERMERROR,
  spf_after_all: "Servers that the term was meant to allow do not pass SPF.",
  spf_duplicate: SPF_WASTE,
  spf_too_long: "Receivers without TCP to your name servers do not get the record.",
  spf_macro: "The result depends on the message, so it cannot be predicted here.",
};

type SpfReport = SectionReport<keyof typeof SPF_FINDINGS>;

/** RFC 7208 §4.6.4: terms that cause DNS queries, void lookups, and hosts of one `mx`. */
export const SPF_LOOKUPS_MAX = 10;
const VOIDS_MAX = 2;
const MX_HOSTS_MAX = 10;
const LOOKUPS_NEAR = 9;
/** RFC 7208 §3.4: so that a response fits into 512 octets. */
const RECORD_OCTETS_ADVISED = 450;

/** The DNS lookups of a whole evaluation. */
interface SpfSums {
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
    private readonly report: SpfReport,
    private readonly root: string,
    private readonly domain: string,
  ) {}

  fault({ text, code, problem }: Extract<SpfTerm, { kind: "fault" }>): void {
    this.report.error(
      code,
      `${this.#record()} is invalid: the term ${quoteText(text)} ${problem}; receivers return permerror and SPF never passes.`,
      this.#term(text, `Correct or remove ${quoteText(text)} in the TXT record of ${this.domain}.`),
    );
  }

  unknownModifier(text: string): void {
    this.report.info(
      "spf_unknown_modifier",
      `${this.#record()} has the unknown modifier ${quoteText(text)}, which receivers ignore.`,
      this.#term(text, `Remove ${quoteText(text)} unless a receiver asked for it.`),
    );
  }

  afterAll(text: string): void {
    this.report.warning(
      "spf_after_all",
      `${this.#record()} has ${quoteText(text)} behind "all", where receivers never read it.`,
      this.#term(text, `Move ${quoteText(text)} in front of "all", or remove it.`),
    );
  }

  ptr(text: string): void {
    this.report.warning(
      "spf_ptr",
      `${this.#record()} uses ${quoteText(text)}; ptr is slow and unreliable, and RFC 7208 section 5.5 says not to use it.`,
      this.#term(text, `Replace ${quoteText(text)} by the addresses themselves (ip4:, ip6:, a:).`),
    );
  }

  macro(text: string): void {
    this.report.info(
      "spf_macro",
      `${this.#record()} uses the macro term ${quoteText(text)}, which depends on each message and was not followed.`,
      { observed: text },
    );
  }

  void(text: string, name: string): void {
    this.report.warning(
      "spf_void",
      `${this.#record()} uses ${quoteText(text)}, but the DNS has no such record at ${name}.`,
      this.#term(text, `Remove ${quoteText(text)}, or publish the missing record at ${name}.`),
    );
  }

  /** Too many hosts of one `mx` are an error. */
  mxHosts(text: string, hosts: number): void {
    if (hosts <= MX_HOSTS_MAX) return;
    this.report.error(
      "spf_mx_hosts",
      `${this.#record()} uses ${quoteText(text)}, which has ${hosts} MX hosts; receivers return permerror above ${MX_HOSTS_MAX}.`,
      {
        ...this.#term(text, `Replace ${quoteText(text)} by the addresses of the hosts that send mail (ip4:, ip6:).`),
        observed: String(hosts),
      },
    );
  }

  targetMissing(text: string, target: string): void {
    this.report.error(
      "spf_target_missing",
      `${this.#record()} uses ${quoteText(text)}, but ${target} has no SPF record; receivers return permerror.`,
      this.#term(text, `Remove ${quoteText(text)}, or correct the name if the service still sends for you.`),
    );
  }

  several(texts: readonly string[]): void {
    this.report.error(
      "spf_several",
      `${this.domain} has ${texts.length} SPF records; receivers return permerror and SPF never passes.`,
      this.#term(texts.join("\n"), `Merge them into one TXT record at ${this.domain} and remove the others.`),
    );
  }

  loop(text: string, target: string): void {
    this.report.error(
      "spf_loop",
      `${this.#record()} uses ${quoteText(text)}, which leads back to ${target}; receivers return permerror.`,
      this.#term(text, `Remove ${quoteText(text)} from the record of ${this.domain}.`),
    );
  }

  includesAll(text: string, target: string): void {
    this.report.error(
      "spf_pass_all",
      `${this.#record()} uses ${quoteText(text)}, whose record ends in +all: every server on the internet passes SPF for ${this.root}.`,
      this.#term(text, `Remove ${quoteText(text)}: the record of ${target} authorizes everybody.`),
    );
  }

  duplicate(text: string): void {
    this.report.info(
      "spf_duplicate",
      `${this.#record()} contains ${quoteText(text)} more than once.`,
      this.#term(text, `Remove the second ${quoteText(text)}.`),
    );
  }

  #record() {
    return this.root === this.domain ? `The SPF record of ${this.domain}` : `The included SPF record of ${this.domain}`;
  }

  /** What was observed, and who has to change it: the owner, or the service behind an include. */
  #term(observed: string, fix: string) {
    return this.root === this.domain
      ? { observed, fix }
      : { observed, fix: `Ask the operator of ${this.domain} to correct the record, or remove the include.` };
  }
}

/** What the DNS lookups of a whole evaluation show. */
export const reportSpfSums = (report: SpfReport, root: string, sums: SpfSums): void => {
  const { lookups, voids, isComplete, largest } = sums;
  const count = `${isComplete ? "" : "at least "}${lookups}`;
  const most = largest.length === 0 ? "" : ` Most of them come from ${largest.join(", ")}.`;
  if (lookups > SPF_LOOKUPS_MAX) {
    report.error(
      "spf_lookups",
      `The SPF record of ${root} needs ${count} DNS lookups; receivers stop after ${SPF_LOOKUPS_MAX} and return permerror.${most}`,
      {
        observed: count,
        fix: `Remove includes of services that no longer send, replace a and mx by ip4: and ip6:, or move a service to a subdomain with an SPF record of its own, until at most ${SPF_LOOKUPS_MAX} lookups are left.`,
      },
    );
  } else if (lookups >= LOOKUPS_NEAR) {
    report.info(
      "spf_lookups_near",
      `The SPF record of ${root} needs ${count} of ${SPF_LOOKUPS_MAX} DNS lookups; one more service may break it.${most}`,
      { observed: count, fix: "Remove includes of services that no longer send before you add another one." },
    );
  }
  if (voids > VOIDS_MAX) {
    report.error(
      "spf_void_lookups",
      `${voids} DNS lookups of the SPF record of ${root} find nothing; receivers may return permerror above ${VOIDS_MAX}.`,
      { observed: String(voids), fix: "Remove the terms that name hosts or records that no longer exist." },
    );
  }
};

/** A domain that several records include. */
export const reportRepeatedInclude = (report: SpfReport, root: string, target: string, times: number): void =>
  report.info(
    "spf_duplicate",
    `${target} is included ${times} times below the SPF record of ${root}, and counts as a DNS lookup each time.`,
    { observed: target, fix: `Remove all but one include that leads to ${target}.` },
  );

/** How the record of the domain itself ends. `all` is null without `all`. */
export const reportSpfAll = (report: SpfReport, root: string, all: string | null, record: string): void => {
  if (all === "+") {
    report.error(
      "spf_pass_all",
      `The SPF record of ${root} ends in +all: every server on the internet passes SPF for ${root}.`,
      { observed: record, fix: `Replace "+all" by "-all" (or "~all" while you are still looking for senders).` },
    );
  } else if (all === "?") {
    report.warning(
      "spf_neutral_all",
      `The SPF record of ${root} ends in ?all, which says nothing about servers that are not listed.`,
      { observed: record, fix: `Replace "?all" by "~all" or "-all".` },
    );
  } else if (all === null) {
    report.warning(
      "spf_no_all",
      `The SPF record of ${root} has neither "all" nor a redirect, so servers that are not listed are neutral.`,
      { observed: record, fix: `Add "~all" or "-all" at the end of the record.` },
    );
  }
};

export const reportSpfLength = (report: SpfReport, root: string, record: string): void => {
  const octets = new TextEncoder().encode(record).length;
  if (octets <= RECORD_OCTETS_ADVISED) return;
  report.info(
    "spf_too_long",
    `The SPF record of ${root} has ${octets} octets; above ${RECORD_OCTETS_ADVISED} a response may not fit into a small DNS packet (RFC 7208 section 3.4).`,
    { observed: String(octets), fix: "Move a part of the record to a name of its own and include that name." },
  );
};

/** No record at the domain itself: `almost` are texts that were probably meant as one. */
export const reportSpfMissing = (report: SpfReport, root: string, almost: readonly string[]): void => {
  const [text] = almost;
  if (text !== undefined) {
    report.error(
      "spf_not_recognized",
      `${root} has the TXT record ${quoteText(text)}, which is not an SPF record: it must begin with "v=spf1 ".`,
      { observed: text, fix: `Publish the record again without quotation marks, beginning with "v=spf1" and a space.` },
    );
    return;
  }
  report.error("spf_missing", `${root} has no SPF record, so SPF never passes for it.`, {
    fix: `Publish a TXT record at ${root} that lists the servers and services that send for it, such as "v=spf1 mx ~all"; "v=spf1 -all" if it sends no mail.`,
  });
};
