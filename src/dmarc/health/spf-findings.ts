import { findingOf, type HealthFinding, quoteText } from "./health-finding.ts";
import type { SpfTerm } from "./spf-record.ts";

/** RFC 7208 §4.6.4: terms that cause DNS queries, void lookups, and hosts of one `mx`. */
export const SPF_LOOKUPS_MAX = 10;
export const SPF_VOIDS_MAX = 2;
export const SPF_MX_HOSTS_MAX = 10;
const LOOKUPS_NEAR = 9;
/** RFC 7208 §3.4: so that a response fits into 512 octets. */
const RECORD_OCTETS_ADVISED = 450;

/** Where a term stands: the audited domain, and the domain whose record holds it. */
export interface SpfPlace {
  readonly root: string;
  readonly domain: string;
}

const recordOf = ({ root, domain }: SpfPlace): string =>
  root === domain ? `The SPF record of ${domain}` : `The included SPF record of ${domain}`;

/** Who has to change a record: the owner, or the service behind an include. */
const mender = ({ root, domain }: SpfPlace, own: string): string =>
  root === domain ? own : `Ask the operator of ${domain} to correct the record, or remove the include.`;

export const spfFault = (
  place: SpfPlace,
  { text, code, problem }: Extract<SpfTerm, { kind: "fault" }>,
): HealthFinding =>
  findingOf(
    "error",
    code,
    `${recordOf(place)} is invalid: the term ${quoteText(text)} ${problem}; receivers return permerror and SPF never passes.`,
    {
      observed: text,
      fix: mender(place, `Correct or remove ${quoteText(text)} in the TXT record of ${place.domain}.`),
    },
  );

export const spfUnknownModifier = (place: SpfPlace, text: string): HealthFinding =>
  findingOf(
    "info",
    "spf_unknown_modifier",
    `${recordOf(place)} has the unknown modifier ${quoteText(text)}, which receivers ignore.`,
    {
      observed: text,
      fix: mender(place, `Remove ${quoteText(text)} unless a receiver asked for it.`),
    },
  );

export const spfAfterAll = (place: SpfPlace, text: string): HealthFinding =>
  findingOf(
    "warning",
    "spf_after_all",
    `${recordOf(place)} has ${quoteText(text)} behind "all", where receivers never read it.`,
    {
      observed: text,
      fix: mender(place, `Move ${quoteText(text)} in front of "all", or remove it.`),
    },
  );

export const spfPtr = (place: SpfPlace, text: string): HealthFinding =>
  findingOf(
    "warning",
    "spf_ptr",
    `${recordOf(place)} uses ${quoteText(text)}; ptr is slow and unreliable, and RFC 7208 section 5.5 says not to use it.`,
    { observed: text, fix: mender(place, `Replace ${quoteText(text)} by the addresses themselves (ip4:, ip6:, a:).`) },
  );

export const spfMacro = (place: SpfPlace, text: string): HealthFinding =>
  findingOf(
    "info",
    "spf_macro",
    `${recordOf(place)} uses the macro term ${quoteText(text)}, which depends on each message and was not followed.`,
    {
      observed: text,
    },
  );

export const spfVoid = (place: SpfPlace, text: string, name: string): HealthFinding =>
  findingOf(
    "warning",
    "spf_void",
    `${recordOf(place)} uses ${quoteText(text)}, but the DNS has no such record at ${name}.`,
    {
      observed: text,
      fix: mender(place, `Remove ${quoteText(text)}, or publish the missing record at ${name}.`),
    },
  );

export const spfMxHosts = (place: SpfPlace, text: string, hosts: number): HealthFinding =>
  findingOf(
    "error",
    "spf_mx_hosts",
    `${recordOf(place)} uses ${quoteText(text)}, which has ${hosts} MX hosts; receivers return permerror above ${SPF_MX_HOSTS_MAX}.`,
    {
      observed: String(hosts),
      fix: mender(place, `Replace ${quoteText(text)} by the addresses of the hosts that send mail (ip4:, ip6:).`),
    },
  );

export const spfTargetMissing = (place: SpfPlace, text: string, target: string): HealthFinding =>
  findingOf(
    "error",
    "spf_target_missing",
    `${recordOf(place)} uses ${quoteText(text)}, but ${target} has no SPF record; receivers return permerror.`,
    {
      observed: text,
      fix: mender(place, `Remove ${quoteText(text)}, or correct the name if the service still sends for you.`),
    },
  );

export const spfSeveral = (place: SpfPlace, texts: readonly string[]): HealthFinding =>
  findingOf(
    "error",
    "spf_several",
    `${place.domain} has ${texts.length} SPF records; receivers return permerror and SPF never passes.`,
    {
      observed: texts.join("\n"),
      fix: mender(place, `Merge them into one TXT record at ${place.domain} and remove the others.`),
    },
  );

export const spfLoop = (place: SpfPlace, text: string, target: string): HealthFinding =>
  findingOf(
    "error",
    "spf_loop",
    `${recordOf(place)} uses ${quoteText(text)}, which leads back to ${target}; receivers return permerror.`,
    {
      observed: text,
      fix: mender(place, `Remove ${quoteText(text)} from the record of ${place.domain}.`),
    },
  );

export const spfIncludesAll = (place: SpfPlace, text: string, target: string): HealthFinding =>
  findingOf(
    "error",
    "spf_pass_all",
    `${recordOf(place)} uses ${quoteText(text)}, whose record ends in +all: every server on the internet passes SPF for ${place.root}.`,
    { observed: text, fix: mender(place, `Remove ${quoteText(text)}: the record of ${target} authorizes everybody.`) },
  );

export const spfDuplicate = (place: SpfPlace, text: string): HealthFinding =>
  findingOf("info", "spf_duplicate", `${recordOf(place)} contains ${quoteText(text)} more than once.`, {
    observed: text,
    fix: mender(place, `Remove the second ${quoteText(text)}.`),
  });

export const spfTargetTwice = (root: string, target: string, times: number): HealthFinding =>
  findingOf(
    "info",
    "spf_duplicate",
    `${target} is included ${times} times below the SPF record of ${root}, and counts as a DNS lookup each time.`,
    {
      observed: target,
      fix: `Remove all but one include that leads to ${target}.`,
    },
  );

/** A sum of DNS lookups; `isLeast` where a part of the record could not be followed. */
export interface SpfSum {
  readonly count: number;
  readonly isLeast: boolean;
}

/** What the sums of a whole evaluation say. */
export const spfSumFindings = (
  root: string,
  lookups: SpfSum,
  voids: number,
  most: readonly string[],
): readonly HealthFinding[] => {
  const findings: HealthFinding[] = [];
  const count = `${lookups.isLeast ? "at least " : ""}${lookups.count}`;
  const costs = most.length === 0 ? "" : ` Most of them come from ${most.join(", ")}.`;
  if (lookups.count > SPF_LOOKUPS_MAX) {
    findings.push(
      findingOf(
        "error",
        "spf_lookups",
        `The SPF record of ${root} needs ${count} DNS lookups; receivers stop after ${SPF_LOOKUPS_MAX} and return permerror.${costs}`,
        {
          observed: count,
          fix: `Remove includes of services that no longer send, replace a and mx by ip4: and ip6:, or move a service to a subdomain with an SPF record of its own, until at most ${SPF_LOOKUPS_MAX} lookups are left.`,
        },
      ),
    );
  } else if (lookups.count >= LOOKUPS_NEAR) {
    findings.push(
      findingOf(
        "info",
        "spf_lookups_near",
        `The SPF record of ${root} needs ${count} of ${SPF_LOOKUPS_MAX} DNS lookups; one more service may break it.${costs}`,
        {
          observed: count,
          fix: "Remove includes of services that no longer send before you add another one.",
        },
      ),
    );
  }
  if (voids > SPF_VOIDS_MAX) {
    findings.push(
      findingOf(
        "error",
        "spf_void_lookups",
        `${voids} DNS lookups of the SPF record of ${root} find nothing; receivers may return permerror above ${SPF_VOIDS_MAX}.`,
        { observed: String(voids), fix: "Remove the terms that name hosts or records that no longer exist." },
      ),
    );
  }
  return findings;
};

/** How the record of the domain itself ends. `all` is null without `all`. */
export const spfAllFindings = (root: string, all: string | null, record: string): readonly HealthFinding[] => {
  if (all === "+") {
    return [
      findingOf(
        "error",
        "spf_pass_all",
        `The SPF record of ${root} ends in +all: every server on the internet passes SPF for ${root}.`,
        {
          observed: record,
          fix: `Replace "+all" by "-all" (or "~all" while you are still looking for senders).`,
        },
      ),
    ];
  }
  if (all === "?") {
    return [
      findingOf(
        "warning",
        "spf_neutral_all",
        `The SPF record of ${root} ends in ?all, which says nothing about servers that are not listed.`,
        {
          observed: record,
          fix: `Replace "?all" by "~all" or "-all".`,
        },
      ),
    ];
  }
  if (all !== null) return [];
  return [
    findingOf(
      "warning",
      "spf_no_all",
      `The SPF record of ${root} has neither "all" nor a redirect, so servers that are not listed are neutral.`,
      {
        observed: record,
        fix: `Add "~all" or "-all" at the end of the record.`,
      },
    ),
  ];
};

/** What the text of a record says by its length alone. */
export const spfLengthFindings = (root: string, record: string): readonly HealthFinding[] => {
  const octets = new TextEncoder().encode(record).length;
  if (octets <= RECORD_OCTETS_ADVISED) return [];
  return [
    findingOf(
      "info",
      "spf_too_long",
      `The SPF record of ${root} has ${octets} octets; above ${RECORD_OCTETS_ADVISED} a response may not fit into a small DNS packet (RFC 7208 section 3.4).`,
      { observed: String(octets), fix: "Move a part of the record to a name of its own and include that name." },
    ),
  ];
};

/** No record at the domain itself: `almost` are texts that were probably meant as one. */
export const spfMissing = (root: string, almost: readonly string[]): HealthFinding => {
  const [text] = almost;
  if (text !== undefined) {
    return findingOf(
      "error",
      "spf_not_recognized",
      `${root} has the TXT record ${quoteText(text)}, which is not an SPF record: it must begin with "v=spf1 ".`,
      {
        observed: text,
        fix: `Publish the record again without quotation marks, beginning with "v=spf1" and a space.`,
      },
    );
  }
  return findingOf("error", "spf_missing", `${root} has no SPF record, so SPF never passes for it.`, {
    fix: `Publish a TXT record at ${root} that lists the servers and services that send for it, such as "v=spf1 mx ~all"; "v=spf1 -all" if it sends no mail.`,
  });
};
