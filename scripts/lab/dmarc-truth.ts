/** The messages that reporters saw, and what a row about them has to say. Made up by hand, for every kind of row. */

/** The domains that are monitored; they send mail from and below themselves. */
export const DOMAINS = { none: "lab-one.com", quarantine: "lab-two.org", reject: "lab-three.co.uk" } as const;
type Policy = keyof typeof DOMAINS;

/** What an authentication check said of a domain; of DKIM with a selector, of SPF with a scope. */
export interface Checked {
  readonly domain: string;
  readonly result: string;
  readonly selector?: string;
  readonly scope?: string;
}

/** Messages of one source that fare alike: what the reporter is told, and what it has to make of it. */
export interface Seen {
  readonly reporter: "mailDmarc" | "openDmarc";
  readonly policy: Policy;
  readonly ip: string;
  readonly count: number;
  readonly headerFrom: string;
  readonly envelopeFrom: string;
  readonly dkim: readonly Checked[];
  readonly spf: Checked;
  /** `type comment`: the override that the reporter applies. */
  readonly override: string | null;
  /** Disposition, then the aligned results of DKIM and SPF. */
  readonly expected: readonly [disposition: string, dkim: "pass" | "fail", spf: "pass" | "fail"];
}

type Written = readonly [
  ip: string,
  count: number,
  headerFrom: string,
  dkim: readonly string[],
  spf: string,
  expected: string,
  override?: string,
];

const dkimOf = (text: string): Checked => {
  const [domain = "", selector = "", result = ""] = text.split(" ");
  return { domain, selector, result };
};

const spfOf = (text: string): Checked => {
  const [domain = "", result = "", scope = "mfrom"] = text.split(" ");
  return { domain, result, scope };
};

const seenBy =
  (reporter: Seen["reporter"], policy: Policy) =>
  ([ip, count, headerFrom, dkim, spf, expected, override]: Written): Seen => {
    const [disposition = "", alignedDkim, alignedSpf] = expected.split(" ");
    const word = (result: string | undefined) => (result === "pass" ? "pass" : "fail");
    return {
      ...{ reporter, policy, ip, count, headerFrom },
      override: override ?? null,
      envelopeFrom: spfOf(spf).domain,
      dkim: dkim.map(dkimOf),
      spf: spfOf(spf),
      expected: [disposition, word(alignedDkim), word(alignedSpf)],
    };
  };

const ONE = DOMAINS.none;
const TWO = DOMAINS.quarantine;
const THREE = DOMAINS.reject;

/** Three senders that sign with the same key, told apart by their reverse names alone: see `dmarc-sources.ts`. */
export const OWN_SERVER = "192.0.9.25";
export const GOOGLE_SERVER = "209.85.220.41";
export const SENDGRID_SERVER = "167.89.100.7";

/** Mail::DMARC puts equal address, disposition and aligned results together, so that no two rows here are equal in all of them. */
const MAIL_DMARC: readonly Seen[] = [
  ...(
    [
      ["192.0.2.10", 7, ONE, [`${ONE} s1 pass`], `${ONE} pass`, "none pass pass"],
      ["192.0.2.11", 3, ONE, [], `bounce.${ONE} pass`, "none fail pass"],
      ["198.51.100.20", 4, ONE, ["esp-lab.net k1 pass", `mail.${ONE} s2 pass`], "esp-lab.net pass", "none pass fail"],
      ["203.0.113.66", 12, ONE, [], "evil-lab.net pass", "none fail fail"],
      ["2001:db8:1::25", 2, `news.${ONE}`, [`news.${ONE} s1 pass`], `news.${ONE} softfail`, "none pass fail"],
      ["2001:db8:ffff::1", 1, ONE, [`${ONE} s1 fail`], `${ONE} fail`, "none fail fail"],
    ] satisfies readonly Written[]
  ).map(seenBy("mailDmarc", "none")),
  ...(
    [
      ["192.0.2.30", 9, TWO, [`${TWO} sel pass`], `${TWO} pass`, "none pass pass"],
      ["192.0.2.31", 2, TWO, [`mail.${TWO} sel pass`], `${TWO} fail`, "quarantine fail fail"],
      ["198.51.100.77", 5, TWO, [`${TWO} sel fail`], "list-lab.net pass", "none fail fail", "mailing_list a list"],
      ["198.51.100.78", 3, TWO, [`${TWO} sel fail`], "fwd-lab.net pass", "none fail fail", "trusted_forwarder known"],
      [
        "198.51.100.79",
        1,
        TWO,
        [],
        "arc-lab.net pass",
        "none fail fail",
        "local_policy arc=pass as.1.arc-lab.net=pass",
      ],
      ["203.0.113.67", 20, `shop.${TWO}`, [], `shop.${TWO} fail`, "reject fail fail"],
      ["2001:db8:2::30", 1, TWO, [`${TWO} sel permerror`], `${TWO} temperror`, "quarantine fail fail"],
    ] satisfies readonly Written[]
  ).map(seenBy("mailDmarc", "quarantine")),
  ...(
    [
      ["192.0.2.50", 6, THREE, [`${THREE} s1 pass`], `${THREE} pass`, "none pass pass"],
      ["192.0.2.51", 1, THREE, [`${THREE} s1 neutral`], `${THREE} pass`, "none fail pass"],
      ["203.0.113.68", 8, THREE, [], `${THREE} fail`, "reject fail fail"],
      ["203.0.113.69", 3, `mail.${THREE}`, [], `mail.${THREE} none`, "reject fail fail"],
      ["2001:db8:3::99", 4, THREE, ["a-lab.net s pass", "b-lab.net s fail"], "b-lab.net pass helo", "reject fail fail"],
      ["198.51.100.80", 2, THREE, [], `${THREE} neutral`, "none fail fail", "other known sender"],
      [OWN_SERVER, 30, THREE, [`${THREE} s1 pass`], `${THREE} pass`, "none pass pass"],
      [GOOGLE_SERVER, 20, THREE, [`${THREE} s1 pass`], `${THREE} pass`, "none pass pass"],
      [SENDGRID_SERVER, 25, THREE, [`${THREE} s1 pass`], `em.${THREE} pass`, "none pass pass"],
    ] satisfies readonly Written[]
  ).map(seenBy("mailDmarc", "reject")),
];

/** OpenDMARC writes a row for every message, the domain of `From` as the policy's, and always a word about ARC. */
const ARC_FAIL = "local_policy arc=fail";
const OPENDMARC: readonly Seen[] = [
  ...(
    [
      ["192.0.2.10", 1, ONE, [`${ONE} s1 pass`], `${ONE} pass`, "none pass pass", ARC_FAIL],
      ["203.0.113.66", 1, ONE, [], "evil-lab.net pass", "none fail fail", ARC_FAIL],
      ["2001:db8:ffff::1", 1, ONE, [`${ONE} s1 fail`], `${ONE} softfail`, "none fail fail", ARC_FAIL],
    ] satisfies readonly Written[]
  ).map(seenBy("openDmarc", "none")),
  ...(
    [
      ["192.0.2.30", 1, TWO, [`${TWO} sel pass`], `${TWO} pass`, "none pass pass", ARC_FAIL],
      ["192.0.2.31", 1, TWO, [`mail.${TWO} sel pass`], `${TWO} fail`, "quarantine fail fail", ARC_FAIL],
      ["203.0.113.67", 1, `shop.${TWO}`, [], `shop.${TWO} fail`, "reject fail fail", ARC_FAIL],
    ] satisfies readonly Written[]
  ).map(seenBy("openDmarc", "quarantine")),
  ...(
    [
      ["203.0.113.68", 1, THREE, [], `${THREE} fail`, "reject fail fail", ARC_FAIL],
      ["198.51.100.81", 1, THREE, [], "arc-lab.net pass", "none fail fail", "local_policy arc=pass"],
    ] satisfies readonly Written[]
  ).map(seenBy("openDmarc", "reject")),
];

export const SEEN: readonly Seen[] = [...MAIL_DMARC, ...OPENDMARC];

/** The domain that the report's policy names: OpenDMARC takes the name in `From`. */
const policyDomainOf = ({ reporter, policy, headerFrom }: Seen): string =>
  reporter === "openDmarc" ? headerFrom : DOMAINS[policy];

/** A row in one line, the same for what was put in and what came out. */
export interface Told {
  readonly policyDomain: string;
  readonly ip: string;
  readonly count: number;
  readonly disposition: string | null;
  readonly dkim: string | null;
  readonly spf: string | null;
  readonly headerFrom: string | null;
  readonly reasons: readonly string[];
  readonly dkimResults: readonly string[];
  readonly spfResults: readonly string[];
}

export const lineOf = (told: Told): string =>
  [
    ...[told.policyDomain, told.ip, `×${told.count}`, told.disposition, `dkim=${told.dkim}`, `spf=${told.spf}`],
    ...[`from ${told.headerFrom}`, `[${told.reasons.join("; ")}]`],
    ...[`DKIM ${told.dkimResults.toSorted().join(", ")}`, `SPF ${told.spfResults.toSorted().join(", ")}`],
  ].join(" ");

/** What a row about these messages has to say. */
export const expectedOf = (seen: Seen): Told => {
  const [disposition, dkim, spf] = seen.expected;
  return {
    ...{ policyDomain: policyDomainOf(seen), ip: seen.ip, count: seen.count, headerFrom: seen.headerFrom },
    ...{ disposition, dkim, spf },
    reasons: seen.override === null ? [] : [seen.override],
    dkimResults: seen.dkim.map((check) => `${check.domain} ${check.selector} ${check.result}`),
    spfResults: [`${seen.spf.domain} ${seen.spf.result}`],
  };
};
