import { Answers, type Api, type Enrolled } from "./dmarc-api.ts";
import { type Claim, claim } from "./claims.ts";
import { type ChangingDns, SERVFAIL_DOMAIN, type Zone } from "./dmarc-dns.ts";
import { DOMAINS, SEEN } from "./dmarc-truth.ts";
import { REPORT_HOST } from "./hosts.ts";

const THEME = "DMARC domains";
/** Below this name the wildcard does not hold, because a name of its own is there. */
const UNAUTHORISED = "noauth-lab.net";
const INHERITING = `post.${DOMAINS.reject}`;

/** A domain, what stands at its `_dmarc` name, and what has to come of it. `OURS` stands for the reporting URI. */
interface Case {
  readonly domain: string;
  readonly truth: string;
  /** Records as in a zone file. */
  readonly before: readonly string[];
  /** `action value`, or `action reason`. */
  readonly advice: string;
  /** What is published before the verification: by default the advised value. */
  readonly after?: readonly string[];
  /** The status after it, and the checks on record, address and authorisation. */
  readonly verified: string;
}

const TWO = "v=DMARC1; p=quarantine; sp=reject; adkim=s; rua=mailto:dmarc@lab-two.org";

const CASES: readonly Case[] = [
  {
    ...{ domain: DOMAINS.none, truth: "nothing published", before: [] },
    ...{ advice: "create v=DMARC1; p=none; rua=OURS", verified: "active true true true" },
  },
  {
    ...{ domain: DOMAINS.quarantine, truth: "reports to others", before: [`TXT "${TWO}"`] },
    ...{ advice: `update ${TWO},OURS`, verified: "active true true true" },
  },
  {
    ...{ domain: DOMAINS.reject, truth: "reports to nobody", before: ['TXT "v=DMARC1; p=reject; pct=100"'] },
    ...{ advice: "update v=DMARC1; p=reject; pct=100; rua=OURS", verified: "active true true true" },
  },
  {
    ...{ domain: "odd-lab.com", truth: "odd spacing, unknown tags, two strings" },
    before: ['TXT "v=DMARC1 ;P=None;x-odd=1; rua = mailto:a@odd-lab.com!10m" ",mailto:b@odd-lab.com ; "'],
    advice: "update v=DMARC1 ;P=None;x-odd=1; rua = mailto:a@odd-lab.com!10m,mailto:b@odd-lab.com,OURS ; ",
    verified: "active true true true",
  },
  {
    ...{ domain: "two-lab.com", truth: "two records" },
    before: ['TXT "v=DMARC1; p=none"', 'TXT "v=DMARC1; p=reject"'],
    ...{ advice: "conflict several_records", verified: "action_required false false true" },
  },
  {
    ...{
      domain: "cname-lab.com",
      truth: "an alias of somebody else's record",
      before: ["CNAME _dmarc.hosted-lab.com."],
      after: ["CNAME _dmarc.hosted-lab.com."],
    },
    ...{ advice: "conflict cname", verified: "action_required true false true" },
  },
  {
    ...{ domain: SERVFAIL_DOMAIN, truth: "its DNS fails", before: [] },
    ...{ advice: "conflict dns_failure", verified: "pending null null true" },
  },
  {
    ...{ domain: UNAUTHORISED, truth: "the report host allows no reports about it", before: [] },
    ...{ advice: "create v=DMARC1; p=none; rua=OURS", verified: "action_required true true false" },
  },
  {
    ...{ domain: INHERITING, truth: `inherits from ${DOMAINS.reject}`, before: [] },
    ...{ advice: "create v=DMARC1; p=reject; rua=OURS", verified: "active true true true" },
  },
  {
    ...{ domain: "lazy-lab.com", truth: "published nothing after all", before: [], after: [] },
    ...{ advice: "create v=DMARC1; p=none; rua=OURS", verified: "action_required false false true" },
  },
  {
    ...{ domain: "other-lab.com", truth: "other TXT at the name", before: ['TXT "unrelated words"'] },
    after: ['TXT "unrelated words"', "ADVISED"],
    ...{ advice: "create v=DMARC1; p=none; rua=OURS", verified: "active true true true" },
  },
];

/** Names at which nobody can publish anything, and what is said of them. */
const REFUSED = ["printer.lab.test", "192.0.2.1", "co.uk", "https://lab-one.com/", "dmarc@lab-one.com"];

/** What stands in the DNS besides the domains' own records. */
const SURROUNDINGS: Zone = {
  [`*._report._dmarc.${REPORT_HOST}`]: ['TXT "v=DMARC1;"'],
  [`${UNAUTHORISED}._report._dmarc.${REPORT_HOST}`]: ['TXT "no"'],
  "_dmarc.hosted-lab.com": ['TXT "v=DMARC1; p=reject; rua=mailto:x@hosted-lab.com"'],
  // Mail::DMARC judges no mail of domains that do not exist.
  ...Object.fromEntries(SEEN.map(({ headerFrom }) => [headerFrom, ["A 192.0.2.1"]])),
  [DOMAINS.quarantine]: ["A 192.0.2.1", `MX 10 relay.reporters-lab.net.`],
};

const zoneOf = (records: (each: Case) => readonly string[]): Zone => ({
  ...SURROUNDINGS,
  ...Object.fromEntries(CASES.map((each) => [`_dmarc.${each.domain}`, records(each)])),
});

/** The zone as it is before anybody has enrolled. */
export const ZONE_BEFORE: Zone = zoneOf(({ before }) => before);

const adviceIn = ({ dns_records, domain }: Pick<Enrolled, "dns_records" | "domain">): string => {
  const [record] = dns_records;
  if (record === undefined) return "nothing";
  if (record.host !== `_dmarc.${domain.domain}`) return `a record at ${record.host}`;
  const text = record.action === "conflict" ? (record.reason ?? "") : record.value;
  return `${record.action} ${text.replace(`mailto:${domain.reporting_address}`, "OURS")}`;
};

const enrolAll = async (api: Api): Promise<ReadonlyMap<string, Enrolled>> => {
  const enrolled = new Map<string, Enrolled>();
  for (const { domain } of CASES) {
    enrolled.set(domain, await api.ask(Answers.enrolment, "POST", "/domains", { domain }));
  }
  return enrolled;
};

const verify = async (api: Api, { domain: { id } }: Enrolled): Promise<string> => {
  const { domain, checks } = await api.ask(Answers.verified, "POST", `/domains/${id}/verify`);
  return [domain.status, ...checks.map(({ ok }) => String(ok))].join(" ");
};

const policyOf = async (api: Api, { domain: { id } }: Enrolled): Promise<string> => {
  const { policy } = await api.ask(Answers.domain, "GET", `/domains/${id}`);
  return policy === null
    ? "none"
    : `p=${policy.p} sp=${policy.sp} ${policy.own ? "own" : `of ${policy.inherited_from}`}`;
};

const published = (each: Case, enrolled: ReadonlyMap<string, Enrolled>): readonly string[] => {
  const value = enrolled.get(each.domain)?.dns_records[0]?.value ?? "";
  const advised = `TXT "${value}"`;
  const usual = value === "" ? each.before : [advised];
  return each.after === undefined ? usual : each.after.map((record) => (record === "ADVISED" ? advised : record));
};

/** What is unlike for one domain that was verified: its record vanishes, and comes back. */
const loseAndRegain = async (api: Api, dns: ChangingDns, enrolled: ReadonlyMap<string, Enrolled>) => {
  const lost = CASES.find(({ domain }) => domain === "odd-lab.com");
  const domain = enrolled.get("odd-lab.com");
  if (lost === undefined || domain === undefined) return [];
  const zone = zoneOf((each) => published(each, enrolled));
  await dns.publish({ ...zone, [`_dmarc.${lost.domain}`]: lost.before });
  const without = await verify(api, domain);
  await dns.publish(zone);
  return [
    claim(THEME, `${lost.domain} verified, our address gone again`, "action_required true false true", without),
    claim(THEME, `${lost.domain} verified, our address back`, "active true true true", await verify(api, domain)),
  ];
};

/** Enrols every domain, publishes what was advised, and has it verified. The domains by their name, and what was right. */
export const runDomains = async (
  api: Api,
  dns: ChangingDns,
): Promise<{ readonly enrolled: ReadonlyMap<string, Enrolled>; readonly cells: readonly Claim[] }> => {
  const cells: Claim[] = [];
  for (const domain of REFUSED) {
    const { status } = await api.send("POST", "/domains", { domain });
    cells.push(claim(THEME, `${domain} enrolled`, "400", String(status)));
  }
  const enrolled = await enrolAll(api);
  for (const { domain, truth, advice } of CASES) {
    const found = enrolled.get(domain);
    if (found !== undefined) cells.push(claim(THEME, `${domain} enrolled (${truth})`, advice, adviceIn(found)));
  }
  const inheriting = enrolled.get(INHERITING);
  if (inheriting !== undefined)
    cells.push(
      claim(THEME, `${INHERITING}, policy`, `p=reject sp=reject of ${DOMAINS.reject}`, await policyOf(api, inheriting)),
    );
  const again = await api.ask(Answers.enrolment, "POST", "/domains", { domain: "LAB-ONE.com." });
  const same = `created=${again.created} ${again.domain.id === enrolled.get(DOMAINS.none)?.domain.id}`;
  cells.push(claim(THEME, "LAB-ONE.com. enrolled again", "created=false true", same));

  await dns.publish(zoneOf((each) => published(each, enrolled)));
  for (const { domain, truth, verified } of CASES) {
    const found = enrolled.get(domain);
    if (found !== undefined)
      cells.push(claim(THEME, `${domain} verified (${truth})`, verified, await verify(api, found)));
  }
  const merged = enrolled.get(DOMAINS.quarantine);
  if (merged !== undefined) {
    const { dns_records, service_records } = await api.ask(Answers.dns, "GET", `/domains/${merged.domain.id}/dns`);
    const advice = adviceIn({ dns_records, domain: merged.domain });
    cells.push(claim(THEME, `${DOMAINS.quarantine}, records again`, `none ${TWO},OURS`, advice));
    const wildcard = service_records.find(({ type }) => type === "TXT");
    const told = `${wildcard?.host} ${wildcard?.value}`;
    cells.push(claim(THEME, "the operator's record", `*._report._dmarc.${REPORT_HOST} v=DMARC1;`, told));
  }
  cells.push(...(await loseAndRegain(api, dns, enrolled)));
  return { enrolled, cells };
};
