import { isSameOrganisation } from "../../../foundation/mail/organisational-domain.ts";
import { isForwarded, type ReportRow } from "../report/report-row.ts";
import type { PublishedPolicy } from "../report/report.ts";

/**
 * What a row says about the sender of its messages: the IP address, and what authenticated them. Together they are the key of a
 * stored source. The service or organization is determined when sources are queried, because reverse names and AS numbers are
 * looked up later.
 */
export interface SourceEvidence {
  /** Canonical; null for messages of addresses beyond the limit of a domain. */
  readonly ip: string | null;
  /** `d=` of the first signature that passes and is aligned, with its selector. */
  readonly signer: string | null;
  readonly selector: string | null;
  /** The domain of the first SPF check that passed, an aligned one before others; cut to `NAME_LABELS_MAX` labels. */
  readonly envelope: string | null;
  /** `d=` of the first signature that passes and is not aligned; cut likewise. */
  readonly foreign: string | null;
}

/** Enough to identify a service, and few enough that envelope domains per message do not become sources per message. */
const NAME_LABELS_MAX = 4;
const ABSENT = "-";
const SELECTOR = /^[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?$/;

/**
 * What a row says about its sender, for the enrolled domain. Aligned means: within the organizational domain of header_from and
 * of the enrolled domain, in rows whose header_from is the enrolled domain, one below it, or missing. Signatures of other domains
 * under other header_from domains prove nothing.
 */
export const evidenceOf = (row: ReportRow, domain: string): SourceEvidence => {
  const from = row.headerFrom ?? domain;
  const isOurs = from === domain || from.endsWith(`.${domain}`);
  const isAligned = (name: string) => isOurs && isSameOrganisation(name, from) && isSameOrganisation(name, domain);
  const signatures = row.dkimResults.flatMap(({ domain: signer, selector, result }) =>
    result === "pass" && signer !== null ? [{ signer, selector }] : [],
  );
  const own = signatures.find(({ signer }) => isAligned(signer));
  const foreign = signatures.find(({ signer }) => !isAligned(signer))?.signer ?? null;
  const envelopes = row.spfResults.flatMap(({ domain: name, result }) =>
    result === "pass" && name !== null ? [name] : [],
  );
  // A "pass" without details means that the envelope domain was aligned with header_from. Not so for signatures, which survive
  // forwarding.
  const isSent = isOurs && row.spf === "pass" && row.spfResults.length === 0;
  const envelope = envelopes.find(isAligned) ?? envelopes[0] ?? (isSent ? from : null);
  return {
    ip: row.sourceIp,
    signer: own?.signer ?? null,
    selector: own === undefined ? null : readSelector(own.selector),
    envelope: envelope === null ? null : lastLabels(envelope),
    foreign: foreign === null ? null : lastLabels(foreign),
  };
};

const readSelector = (selector: string | null): string | null => {
  const plain = selector?.toLowerCase() ?? "";
  return SELECTOR.test(plain) ? plain : null;
};

const lastLabels = (name: string) => name.split(".").slice(-NAME_LABELS_MAX).join(".");

/** The key under which a source is stored: `<ip> <d=>/<selector> <envelope> <foreign d=>`, `-` for what is absent, `*` for no single address. */
export const keyOfEvidence = ({ ip, signer, selector, envelope, foreign }: SourceEvidence): string =>
  `${ip ?? "*"} ${signer ?? ABSENT}/${selector ?? ABSENT} ${envelope ?? ABSENT} ${foreign ?? ABSENT}`;

export const sourceKeyOf = (row: ReportRow, domain: string): string => keyOfEvidence(evidenceOf(row, domain));

/** The key without its address, under which messages of addresses beyond the limit are counted. */
export const overflowKeyOf = (key: string): string => `*${key.slice(key.indexOf(" "))}`;

/** The key under which everything is counted that is also beyond the limit of keys without an address. */
export const OVERFLOW_REST = `* ${ABSENT}/${ABSENT} ${ABSENT} ${ABSENT}`;

/**
 * Parses a stored key, also the legacy keys of earlier versions (`dkim:`, `spf:`, `ip:`, `other`), which exist until the rebuild
 * has replaced them.
 */
export const readSourceKey = (key: string): SourceEvidence => {
  const [ip = "", signed = "", envelope = "", foreign] = key.split(" ");
  if (foreign === undefined) return readLegacyKey(key);
  const slash = signed.lastIndexOf("/");
  return {
    ip: ip === "*" ? null : ip,
    signer: present(signed.slice(0, slash)),
    selector: present(signed.slice(slash + 1)),
    envelope: present(envelope),
    foreign: present(foreign),
  };
};

const present = (word: string) => (word === ABSENT ? null : word);

/** Whether nothing was authenticated in the mail of a source. */
export const isUnproven = (key: string): boolean => overflowKeyOf(key) === OVERFLOW_REST;

/** Whether an earlier version stored the key, without an address. */
export const isLegacyKey = (key: string): boolean => !key.includes(" ");

/** The key that a source had in earlier versions. */
export const legacyKeyOf = (key: string): string => {
  const { ip, signer, envelope } = readSourceKey(key);
  if (signer !== null) return `dkim:${signer}`;
  return envelope === null ? `ip:${ip ?? ""}` : `spf:${envelope}`;
};

const readLegacyKey = (key: string): SourceEvidence => {
  const nothing = { ip: null, signer: null, selector: null, envelope: null, foreign: null };
  const name = key.slice(key.indexOf(":") + 1);
  if (key.startsWith("dkim:")) return { ...nothing, signer: name };
  if (key.startsWith("spf:")) return { ...nothing, envelope: name };
  return key.startsWith("ip:") ? { ...nothing, ip: name } : nothing;
};

/** What follows from a row for the domain it is counted for. */
export interface RowFacts {
  /** See `sourceKeyOf`. */
  readonly key: string;
  /** DMARC passed: aligned DKIM or aligned SPF. */
  readonly isAligned: boolean;
  readonly isDkimAligned: boolean;
  readonly isSpfAligned: boolean;
  /** Not aligned, and forwarded by a host that the receiver trusts. */
  readonly isForwarded: boolean;
  /** Not aligned, although DKIM or SPF passed for some domain. */
  readonly isAuthenticated: boolean;
  /** The higher, the worse: see `recordRank`. */
  readonly rank: number;
}

/** The distance between ranks: more than any count of messages (`COUNT_MAX`). */
export const RANK_STEP = 10_000_000_000;

/** Orders rows: failing ones first, then forwarded ones, then aligned ones; of each those with the most messages. */
export const recordRank = (
  { isAligned, isForwarded: isRelayed }: Pick<RowFacts, "isAligned" | "isForwarded">,
  count: number,
) => (isAligned ? 0 : isRelayed ? 1 : 2) * RANK_STEP + count;

/**
 * The facts about a row. The aligned results that the report states are used. If it states neither, its checks are compared
 * with the header_from domain (the enrolled domain if the row has none), as strictly as the report's policy requires.
 */
export const rowFacts = (row: ReportRow, domain: string, policy: Pick<PublishedPolicy, "adkim" | "aspf">): RowFacts => {
  const isStated = row.dkim !== null || row.spf !== null;
  const from = row.headerFrom ?? domain;
  const isDkimAligned = isStated ? row.dkim === "pass" : passesFor(row.dkimResults, from, policy.adkim);
  const isSpfAligned = isStated ? row.spf === "pass" : passesFor(row.spfResults, from, policy.aspf);
  const isAligned = isDkimAligned || isSpfAligned;
  const isRelayed = !isAligned && isForwarded(row);
  return {
    key: sourceKeyOf(row, domain),
    isAligned,
    isDkimAligned,
    isSpfAligned,
    isForwarded: isRelayed,
    isAuthenticated: !isAligned && (row.dkimResults.some(isPass) || row.spfResults.some(isPass)),
    rank: recordRank({ isAligned, isForwarded: isRelayed }, row.count),
  };
};

type Check = Pick<ReportRow["dkimResults"][number], "domain" | "result">;

const isPass = ({ result }: Check) => result === "pass";

const passesFor = (checks: readonly Check[], from: string, mode: "r" | "s" | null) =>
  checks.some(
    ({ result, domain }) =>
      result === "pass" && domain !== null && (mode === "s" ? domain === from : isSameOrganisation(domain, from)),
  );

/** Messages by their results: of a source on a day in `dmarc_daily`, whose columns have these names. Not aligned: failed DMARC. */
export interface Counts {
  messages: number;
  /** Passed DMARC: by aligned DKIM or aligned SPF. */
  aligned: number;
  alignedDkim: number;
  alignedSpf: number;
  /** Not aligned, but forwarded by a host that the receiver trusts. */
  forwarded: number;
  /** Not aligned, although DKIM or SPF passed for some other domain. */
  authenticated: number;
  quarantined: number;
  rejected: number;
}

export interface ReporterCounts {
  reports: number;
  messages: number;
  aligned: number;
}

/** A reporter, by the name in its reports and by who sent them. */
export interface CountedReporter {
  /** In lower case; empty for one without. */
  readonly reporter: string;
  /** The organizational domain that its mail is authenticated as, or `UNAUTHENTICATED`; empty for what the owner uploaded. */
  readonly author: string;
}

/** The author of all mail that is not authenticated. Never a domain. */
export const UNAUTHENTICATED = "unauthenticated";

export interface NameCounts {
  messages: number;
  aligned: number;
}

/** A day of a domain, with who vouches for what is counted: see `ReporterStore`. */
export interface CountedDay {
  readonly day: number;
  readonly voucher: number;
}

/** What reports contribute to one day of one domain. */
export interface DayRollup extends CountedDay {
  /** By `number` of the source. */
  readonly sources: Map<number, Counts>;
  /** By name and author together. */
  readonly reporters: Map<string, CountedReporter & ReporterCounts>;
  /** By header_from domain, as `nameOf` returns it. */
  readonly names: Map<string, NameCounts>;
}

/** By `number` of the domain, then by day and trust. */
export type Rollup = Map<number, Map<string, DayRollup>>;

/** A row with its facts, its source, and the name under which it is counted. */
export interface CountedRow {
  readonly row: Pick<ReportRow, "count" | "disposition">;
  readonly facts: RowFacts;
  readonly source: number;
  readonly name: string;
}

/** The header_from domain under which a row is counted: the domain or one below it; empty for all others and for none. */
export const nameOf = (headerFrom: string | null, domain: string): string =>
  headerFrom !== null && (headerFrom === domain || headerFrom.endsWith(`.${domain}`)) ? headerFrom : "";

/** The rollup of a day; created if there is none yet. */
export const dayIn = (rollup: Rollup, domain: number, { day, voucher }: CountedDay): DayRollup =>
  entryOf(
    entryOf(rollup, domain, () => new Map()),
    `${day} ${voucher}`,
    () => ({ day, voucher, sources: new Map(), reporters: new Map(), names: new Map() }),
  );

/** Counts a report of a reporter. Its messages are counted with its rows. */
export const addReport = (day: DayRollup, of: CountedReporter): ReporterCounts => {
  const counts = entryOf(day.reporters, `${of.author} ${of.reporter}`, () => ({ ...of, ...noReports() }));
  counts.reports += 1;
  return counts;
};

/** Counts the messages of a row. */
export const addMessages = (counts: Counts, { row, facts }: Pick<CountedRow, "row" | "facts">): void => {
  const { count, disposition } = row;
  counts.messages += count;
  if (facts.isAligned) counts.aligned += count;
  if (facts.isDkimAligned) counts.alignedDkim += count;
  if (facts.isSpfAligned) counts.alignedSpf += count;
  if (facts.isForwarded) counts.forwarded += count;
  if (facts.isAuthenticated) counts.authenticated += count;
  if (disposition === "quarantine") counts.quarantined += count;
  if (disposition === "reject") counts.rejected += count;
};

/** Counts a row of a report of `reporter`. */
export const addRow = (day: DayRollup, reporter: ReporterCounts, { row, facts, source, name }: CountedRow): void => {
  const { count } = row;
  const aligned = facts.isAligned ? count : 0;
  addMessages(entryOf(day.sources, source, noCounts), { row, facts });
  reporter.messages += count;
  reporter.aligned += aligned;
  const named = entryOf(day.names, name, noMessages);
  named.messages += count;
  named.aligned += aligned;
};

/** The value of a key; created if there is none yet. */
export const entryOf = <K, V>(map: Map<K, V>, key: K, create: () => V): V => {
  const found = map.get(key);
  if (found !== undefined) return found;
  const made = create();
  map.set(key, made);
  return made;
};

const noReports = (): ReporterCounts => ({ reports: 0, messages: 0, aligned: 0 });
const noMessages = (): NameCounts => ({ messages: 0, aligned: 0 });
export const noCounts = (): Counts => ({
  messages: 0,
  aligned: 0,
  alignedDkim: 0,
  alignedSpf: 0,
  forwarded: 0,
  authenticated: 0,
  quarantined: 0,
  rejected: 0,
});
