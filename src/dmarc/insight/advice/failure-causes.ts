import { mostFirst, sumOf } from "../../../foundation/base/sums.ts";
import { isSameOrganisation } from "../../../foundation/mail/organisational-domain.ts";
import type { DkimAuthResult, SpfAuthResult } from "../../reports/report/report-row.ts";

/** A record of a report, as far as it shows why mail fails. */
export interface CauseRecord {
  readonly count: number;
  readonly dkimResults: readonly DkimAuthResult[];
  readonly spfResults: readonly SpfAuthResult[];
}

export const CAUSE_CODES = ["dkim_failing", "dkim_missing", "spf_failing", "spf_missing"] as const;

/** Why mail fails that passed before. */
export interface SpikeCause {
  readonly code: (typeof CAUSE_CODES)[number];
  /** The domain of the signature, or of the envelope. */
  readonly domain: string;
  /** Of the signature; null when reports do not give it, and for SPF. */
  readonly selector: string | null;
  /** The result that receivers gave, `fail` or `permerror`, with their explanation; null for what is missing. */
  readonly result: string | null;
}

/** A cause must explain this share of the failing mail. */
const EXPLAINED_MIN = 0.5;
/** Authentication that is usual passed for this share of the mail before. */
const USUAL_MIN = 0.2;
/** Authentication that is used at all is that of this share of the mail. */
const USED_MIN = 0.05;

/**
 * Finds out why mail of a source fails: which aligned authentication usually passed, and now fails or is missing. Where mail is signed
 * with another selector now, which fails, that one comes first: its key was not published. `before` are records from before the
 * incident, `failing` are failing ones since. Empty when the records do not show it.
 */
export const findCauses = (
  domain: string,
  before: readonly CauseRecord[],
  failing: readonly CauseRecord[],
): readonly SpikeCause[] => {
  const usual = new Map<string, { readonly authentication: Authentication; count: number }>();
  for (const record of before) {
    for (const authentication of alignedAuthentications(record, domain)) {
      if (!authentication.isPass) continue;
      const found = usual.get(authentication.id);
      if (found === undefined) usual.set(authentication.id, { authentication, count: record.count });
      else found.count += record.count;
    }
  }
  const messages = sumOf(before, "count");
  return [...usual.values()]
    .filter(({ count }) => count >= messages * USUAL_MIN)
    .toSorted(mostFirst("count"))
    .flatMap(({ authentication }) => causesOf(authentication, failing, domain))
    .filter((cause, at, all) => all.findIndex((one) => isSameCause(one, cause)) === at);
};

/** Whether two causes are about the same authentication. */
export const isSameCause = (a: SpikeCause, b: SpikeCause): boolean =>
  a.code === b.code && a.domain === b.domain && a.selector === b.selector;

const causesOf = (usual: Authentication, failing: readonly CauseRecord[], headerFrom: string) => {
  const cause = causeOf(usual, failing, headerFrom);
  if (cause === null) return [];
  const instead = cause.code === "dkim_missing" ? newSignature(usual, failing, headerFrom) : null;
  return instead === null ? [cause] : [instead, cause];
};

/** What mail is signed with instead of the usual selector, where that fails. */
const newSignature = (usual: Authentication, failing: readonly CauseRecord[], headerFrom: string) => {
  const others = new Map(
    failing
      .flatMap((record) => alignedAuthentications(record, headerFrom))
      .filter(({ kind, id, selector }) => kind === "dkim" && id !== usual.id && selector !== null)
      .map((one) => [one.id, one]),
  );
  const causes = [...others.values()].flatMap((one) => causeOf(one, failing, headerFrom) ?? []);
  return causes.find(({ code }) => code === "dkim_failing") ?? null;
};

interface Authentication {
  readonly id: string;
  readonly kind: "dkim" | "spf";
  readonly domain: string;
  readonly selector: string | null;
  readonly isPass: boolean;
  readonly result: string;
}

const alignedAuthentications = ({ dkimResults, spfResults }: Omit<CauseRecord, "count">, headerFrom: string) =>
  [
    ...dkimResults.map((each) => ({ kind: "dkim" as const, ...each })),
    ...spfResults.map((each) => ({ kind: "spf" as const, selector: null, ...each })),
  ].flatMap(({ kind, domain, selector, result, humanResult }) => {
    if (domain === null || !isSameOrganisation(domain, headerFrom)) return [];
    const explained =
      humanResult === null || humanResult.toLowerCase() === result ? result : `${result}: ${humanResult}`;
    const id = `${kind} ${domain} ${selector ?? ""}`;
    return [{ id, kind, domain, selector, isPass: result === "pass", result: explained }];
  });

/** Whether receivers could not check an aligned authentication of a record, because the DNS did not respond to them. */
export const isUnchecked = (record: CauseRecord, headerFrom: string): boolean =>
  alignedAuthentications(record, headerFrom).some(({ result }) => result.startsWith("temperror"));

/** What became of a usual authentication in failing mail. */
const causeOf = (usual: Authentication, failing: readonly CauseRecord[], headerFrom: string): SpikeCause | null => {
  const results = new Map<string, number>();
  let [all, failed, missing] = [0, 0, 0];
  for (const record of failing) {
    all += record.count;
    const same = alignedAuthentications(record, headerFrom).filter(({ id }) => id === usual.id);
    const [first] = same;
    if (first === undefined) missing += record.count;
    else if (same.every(({ isPass }) => !isPass)) {
      failed += record.count;
      results.set(first.result, (results.get(first.result) ?? 0) + record.count);
    }
  }
  const { kind, domain, selector } = usual;
  if (all > 0 && failed >= all * EXPLAINED_MIN) {
    const [result = null] = [...results].toSorted((a, b) => b[1] - a[1])[0] ?? [];
    return { code: `${kind}_failing`, domain, selector, result };
  }
  if (all > 0 && missing >= all * EXPLAINED_MIN) return { code: `${kind}_missing`, domain, selector, result: null };
  return null;
};

/** A cause in one sentence without a full stop; `since` is a day as people read it. */
export const causeText = ({ code, domain, selector, result }: SpikeCause, since: string): string => {
  const signatures = `DKIM signatures of ${domain}${selector === null ? "" : ` with selector ${selector}`}`;
  switch (code) {
    case "dkim_failing":
      return `${signatures} have failed since ${since} (${failureText(result)})`;
    case "dkim_missing":
      return `${signatures} have been missing since ${since}`;
    case "spf_failing":
      return `SPF for ${domain} has failed since ${since} (${result ?? "fail"})`;
    case "spf_missing":
      return `mail has not used the envelope domain ${domain} since ${since}`;
    default:
      return code satisfies never;
  }
};

/** What receivers mean by a result of a signature that they do not explain (RFC 8601 §2.7.1). */
const failureText = (result: string | null) => {
  if (result === "permerror") return "permerror: receivers find no key that they can use";
  return result === "temperror" ? "temperror: receivers could not look up the key" : (result ?? "fail");
};

/** What to do about a cause, in a sentence. */
export const causeAct = ({ code, domain, selector, result }: SpikeCause, sender: string): string => {
  const [kind = ""] = (result ?? "").split(":");
  const key = selector === null ? `below _domainkey.${domain}` : `at ${selector}._domainkey.${domain}`;
  switch (code) {
    case "dkim_failing":
      return (
        KEY_ACTS[kind]?.(key, domain, sender) ??
        `Compare the key ${key} with the one that ${sender} signs with, and make sure that nothing changes the mail after it is signed.`
      );
    case "dkim_missing":
      return `Have ${sender} sign as ${domain}${selector === null ? "" : ` with selector ${selector}`} again.`;
    case "spf_failing":
      return SPF_ACTS[kind]?.(domain) ?? `Have the SPF record of ${domain} name the addresses of ${sender} again.`;
    case "spf_missing":
      return `Have ${sender} use an envelope address at ${domain} again.`;
    default:
      return code satisfies never;
  }
};

/** What to do about signatures that receivers could not check. */
const KEY_ACTS: Readonly<Record<string, (key: string, domain: string, sender: string) => string>> = {
  permerror: (key, _domain, sender) => `Publish the key that ${sender} signs with ${key}.`,
  temperror: (key, domain) =>
    `Have the name servers of ${domain} respond about the key ${key}: receivers could not look it up.`,
};

/** What to do about SPF that receivers could not evaluate. */
const SPF_ACTS: Readonly<Record<string, (domain: string) => string>> = {
  permerror: (domain) => `Correct the SPF record of ${domain}, or one that it includes: receivers cannot evaluate it.`,
  temperror: (domain) =>
    `Have the name servers respond about the SPF record of ${domain} and what it includes: receivers could not look it up.`,
};

/**
 * The most frequent result of DKIM and of SPF in failing mail, with its share where it is not all of it: "DKIM permerror for example.com
 * with selector s1, SPF softfail for example.com (80 %)". Shares, not messages: not all records of large senders are read. Null without
 * records.
 */
export const failingResults = (domain: string, failing: readonly CauseRecord[]): string | null => {
  const all = sumOf(failing, "count");
  return all === 0 ? null : (["dkim", "spf"] as const).map((kind) => resultText(kind, failing, domain)).join(", ");
};

const resultText = (kind: "dkim" | "spf", failing: readonly CauseRecord[], headerFrom: string): string => {
  const named = failing.map(({ count, ...record }) => ({ count, ...namedResult(kind, record, headerFrom) }));
  const [most = []] = [...Map.groupBy(named, ({ text }) => text("")).values()].toSorted(mostMessages);
  const [same = []] = [...Map.groupBy(most, ({ name }) => name).values()].toSorted(mostMessages);
  const [first] = same;
  if (first === undefined) return "";
  const messages = sumOf(most, "count");
  // Each host of a network may have a name of its own in the envelope.
  const words = first.text(2 * sumOf(same, "count") >= messages ? first.name : "several domains");
  const percent = Math.max(1, Math.floor((100 * messages) / sumOf(failing, "count")));
  return percent === 100 ? words : `${words} (${percent} %)`;
};

const mostMessages = (a: readonly { readonly count: number }[], b: readonly { readonly count: number }[]) =>
  sumOf(b, "count") - sumOf(a, "count");

interface NamedResult {
  /** What the result is about, which `text` takes. */
  readonly name: string;
  readonly text: (name: string) => string;
}

/** Aligned results say most; what passes for another domain says whose authentication it is. */
const namedResult = (kind: "dkim" | "spf", record: Omit<CauseRecord, "count">, headerFrom: string): NamedResult => {
  const title = kind === "dkim" ? "DKIM" : "SPF";
  const own = alignedAuthentications(record, headerFrom).find((one) => one.kind === kind);
  if (own !== undefined) {
    const name = `${own.domain}${own.selector === null ? "" : ` with selector ${own.selector}`}`;
    return { name, text: (of) => `${title} ${own.result} for ${of}` };
  }
  const results = kind === "dkim" ? record.dkimResults : record.spfResults;
  const other = results.find(({ domain, result }) => domain !== null && result === "pass");
  if (other !== undefined)
    return { name: other.domain ?? "", text: (of) => `${title} passes for ${of}, which is not aligned` };
  if (kind === "dkim")
    return fixedResult(results.length === 0 ? "no DKIM signature" : `no DKIM signature of ${headerFrom}`);
  const [first] = results;
  if (first === undefined || first.domain === null) return fixedResult("no SPF result");
  return { name: first.domain, text: (of) => `SPF ${first.result} for ${of}` };
};

const fixedResult = (text: string): NamedResult => ({ name: "", text: () => text });

/**
 * What mail of a source is authenticated with, whether it passes or not: what `USED_MIN` of the messages of one of the groups have.
 * Anybody can send a few through a service, with signatures of others.
 */
export const usedAuthentication = (domain: string, groups: ReadonlyArray<readonly CauseRecord[]>) => {
  const selectors = new Set<string>();
  let usesSpf = false;
  for (const records of groups) {
    const messages = new Map<string | null, number>();
    for (const record of records) {
      const used = alignedAuthentications(record, domain);
      // Null stands for SPF.
      const names = used.flatMap(({ kind, selector }) => (kind === "spf" ? null : (selector ?? [])));
      for (const name of new Set(names)) messages.set(name, (messages.get(name) ?? 0) + record.count);
    }
    const enough = USED_MIN * sumOf(records, "count");
    for (const [name, count] of messages) {
      if (count < enough) continue;
      if (name === null) usesSpf = true;
      else selectors.add(name);
    }
  }
  return { selectors, usesSpf };
};
