import type { DnsOutcome, DnsResponse } from "../net/dns.ts";
import { ipv4Number, isLoopback, matchesCode } from "./code-match.ts";
import type { Blocklist, Category, ListingCode, Severity } from "./blocklist.ts";
import { SEVERITIES } from "./blocklist.ts";

/** One listing that an answer tells of: all of the list's codes with the same id. */
export interface Listing {
  readonly id: string;
  readonly name: string;
  /** What the codes say, each once. */
  readonly meanings: readonly string[];
  readonly category: Category;
  /** The worst among the codes. */
  readonly severity: Severity;
  /** The answers that said so. */
  readonly returnCodes: readonly string[];
}

/**
 * Why an answer says nothing about the target.
 *
 * - `unreachable`: the DNS gave no answer (SERVFAIL, REFUSED, a timeout, no network …).
 * - `not_asked`: this process did not ask (budget, a full queue, the caller gave up).
 * - `outside_loopback`: an answer outside 127.0.0.0/8: the zone is parked, or somebody rewrites answers.
 * - `unrecognised`: an answer that the list does not document.
 * - `unconfirmed`: a change that the list did not say twice, or that its test points contradict.
 */
export type ListFailureCause = "unreachable" | "not_asked" | "outside_loopback" | "unrecognised" | "unconfirmed";

/** What one answer of one list means. Only `listed` and `not_listed` say something about the target. */
export type DecodedResponse =
  | { readonly outcome: "listed"; readonly listings: readonly Listing[] }
  | { readonly outcome: "not_listed"; readonly ignored: readonly string[] }
  | { readonly outcome: "refused"; readonly reason: string; readonly remedy: string }
  | { readonly outcome: "failed"; readonly cause: ListFailureCause; readonly reason: string };

/** What is decoded: the end of the question, and its A records. */
export type ResponseToDecode = Pick<DnsResponse<"A">, "outcome" | "records">;

const REFUSAL_BY_CUSTOM = 0x7f_00_00_01;
const ERRORS_FIRST = 0x7f_ff_ff_00;

const ERROR_ANSWER = {
  outcome: "refused",
  reason:
    "The list answered with an error code of 127.255.255.0/24: it does not serve this resolver, or not this question.",
  remedy: "Ask through a resolver of your own instead of a public one, ask less often, or register with the operator.",
} as const;

const CUSTOMARY_REFUSAL = {
  outcome: "refused",
  reason: "The list answered 127.0.0.1, by which lists say that they do not serve a resolver.",
  remedy: "Ask through a resolver of your own instead of a public one, or ask the operator.",
} as const;

/**
 * Reads the answer of a list by the allow-list of its documented codes, in this order: how the question ended, answers
 * outside 127/8, refusals, ignored answers, codes, and the unrecognised rest. Never throws.
 *
 * Several records are read one by one; a single refusal or an answer outside 127/8 makes the whole answer worthless. An
 * unrecognised record beside a documented one takes nothing from it; alone it is `failed`. A name without records is
 * `not_listed`, which means something only while the list is healthy.
 */
export const decodeResponse = (list: Blocklist, { outcome, records }: ResponseToDecode): DecodedResponse => {
  if (outcome !== "answer" && outcome !== "no_data" && outcome !== "nxdomain") return decodeSilence(list, outcome);
  const answers =
    outcome === "answer" ? [...new Set(records)].map((text) => ({ text, address: ipv4Number(text) })) : [];

  const outside = answers.filter(({ address }) => address === null || !isLoopback(address));
  if (outside.length > 0) {
    const reason = `The list answered ${join(outside)}, outside 127.0.0.0/8: its domain is parked, or the resolver rewrites answers.`;
    return { outcome: "failed", cause: "outside_loopback", reason };
  }
  const addresses = answers.flatMap(({ text, address }) => (address === null ? [] : [{ text, address }]));
  const refusal = addresses.map(({ address }) => findRefusal(list, address)).find((found) => found !== null);
  if (refusal) return refusal;

  const read = addresses.map((answer) => ({ ...answer, ...interpret(list, answer.address) }));
  const listings = mergeListings(read);
  if (listings.length > 0) return { outcome: "listed", listings };
  const unknown = read.filter(({ ignored }) => ignored === null);
  if (unknown.length > 0) {
    const reason = `The list answered ${join(unknown)}, which it does not document.`;
    return { outcome: "failed", cause: "unrecognised", reason };
  }
  return { outcome: "not_listed", ignored: [...new Set(read.flatMap(({ ignored }) => ignored ?? []))] };
};

const join = (answers: ReadonlyArray<{ readonly text: string }>): string => answers.map(({ text }) => text).join(", ");

type Silence = Exclude<DnsOutcome, "answer" | "no_data" | "nxdomain">;

const SILENCES: Readonly<Record<Silence, string>> = {
  unconfirmed: "The resolver gave an empty answer that nothing confirms.",
  servfail: "The resolver could not find an answer (SERVFAIL).",
  refused: "The resolver or the list refused the question (REFUSED).",
  timeout: "Nobody answered in time.",
  malformed: "The answer was not a valid DNS message.",
  network_error: "The resolver could not be reached.",
  cname_loop: "The name is an alias that leads nowhere.",
  invalid_name: "The name cannot be asked for.",
  local_failure: "This machine could not open a socket.",
  overloaded: "Too many questions were waiting.",
  aborted: "The question was given up.",
};
const NOT_ASKED: ReadonlySet<DnsOutcome> = new Set(["invalid_name", "local_failure", "overloaded", "aborted"]);

const decodeSilence = ({ refusals }: Blocklist, outcome: Silence): DecodedResponse => {
  const refusal = refusals.find(({ outcomes }) => outcomes.includes(outcome));
  if (refusal) return { outcome: "refused", reason: refusal.reason, remedy: refusal.remedy };
  return { outcome: "failed", cause: NOT_ASKED.has(outcome) ? "not_asked" : "unreachable", reason: SILENCES[outcome] };
};

const findRefusal = (list: Blocklist, address: number): (DecodedResponse & { outcome: "refused" }) | null => {
  const declared = list.refusals.find(({ matches }) => matches.some((match) => matchesCode(match, address)));
  if (declared) return { outcome: "refused", reason: declared.reason, remedy: declared.remedy };
  if (address >= ERRORS_FIRST) return ERROR_ANSWER;
  if (address !== REFUSAL_BY_CUSTOM) return null;
  const { codes, ignored } = interpret(list, address);
  return codes.length > 0 || ignored !== null ? null : CUSTOMARY_REFUSAL;
};

interface Interpretation {
  readonly codes: readonly ListingCode[];
  readonly ignored: string | null;
}

const interpret = (list: Blocklist, address: number): Interpretation => {
  const ignored = list.ignores.find(({ matches }) => matches.some((match) => matchesCode(match, address)));
  if (ignored) return { codes: [], ignored: ignored.meaning };
  return {
    codes: list.codes.filter(({ matches }) => matches.some((match) => matchesCode(match, address))),
    ignored: null,
  };
};

const mergeListings = (read: ReadonlyArray<Interpretation & { readonly text: string }>): readonly Listing[] => {
  const byId = new Map<string, Listing>();
  for (const { text, codes } of read) {
    for (const code of codes) byId.set(code.id, merge(byId.get(code.id), code, text));
  }
  return [...byId.values()];
};

const merge = (before: Listing | undefined, code: ListingCode, answer: string): Listing => {
  const worse = before === undefined || SEVERITIES.indexOf(code.severity) < SEVERITIES.indexOf(before.severity);
  const { name, category, severity } = worse ? code : before;
  return {
    id: code.id,
    name,
    category,
    severity,
    meanings: [...new Set([...(before?.meanings ?? []), code.meaning])],
    returnCodes: [...new Set([...(before?.returnCodes ?? []), answer])],
  };
};
