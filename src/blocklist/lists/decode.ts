import type { DnsOutcome, DnsResponse } from "../../foundation/net/dns.ts";
import { ipv4Number, isLoopback, matchesCode, type Blocklist, type ListingCode } from "./blocklist.ts";
import { type Severity, SEVERITIES } from "../../foundation/base/severity.ts";

/** One listing in a response: all return codes of the list with the same id. */
export interface Listing extends Pick<ListingCode, "id" | "name" | "category"> {
  /** The meanings of the return codes, without repetition. */
  readonly meanings: readonly string[];
  /** The most severe of the return codes. */
  readonly severity: Severity;
  /** The A records that mean this listing. */
  readonly returnCodes: readonly string[];
}

/**
 * Why a response says nothing about the target.
 *
 * - `unreachable`: no usable response (SERVFAIL, REFUSED, a timeout, no network …).
 * - `not_sent`: no query was sent (budget, full queue, cancelled).
 * - `outside_loopback`: an address outside 127.0.0.0/8: the zone is parked, or the resolver rewrites responses.
 * - `unrecognised`: a return code that the list does not document.
 * - `unconfirmed`: a change that a second response did not confirm, or that the test points contradict.
 */
export type ListFailureCause = "unreachable" | "not_sent" | "outside_loopback" | "unrecognised" | "unconfirmed";

/** The meaning of one response. Only `listed` and `not_listed` say something about the target. */
export type DecodedResponse =
  | { readonly outcome: "listed"; readonly listings: readonly Listing[] }
  | { readonly outcome: "not_listed"; readonly ignored: readonly string[] }
  | { readonly outcome: "refused"; readonly reason: string; readonly remedy: string }
  | { readonly outcome: "failed"; readonly cause: ListFailureCause; readonly reason: string };

/** The part of a DNS response that is decoded. */
export type ResponseToDecode = Pick<DnsResponse<"A">, "outcome" | "records">;

const LOCALHOST = 0x7f_00_00_01;
const ERRORS_FIRST = 0x7f_ff_ff_00;

const ERROR_CODE = {
  outcome: "refused",
  reason:
    "The list returned an error code (127.255.255.0/24): it does not accept queries from this resolver, or not this query.",
  remedy:
    "Use your own recursive resolver instead of a public one, send fewer queries, or register with the operator of the list.",
} as const;

const LOCALHOST_REFUSAL = {
  outcome: "refused",
  reason: "The list returned 127.0.0.1, which usually means that it does not accept queries from this resolver.",
  remedy: "Use your own recursive resolver instead of a public one, or contact the operator of the list.",
} as const;

/**
 * Decodes a response by the documented return codes of the list, in this order: outcome of the query, addresses outside
 * 127.0.0.0/8, refusals, ignored codes, listing codes, unrecognised codes. Never throws.
 *
 * One refusal, or one address outside 127.0.0.0/8, invalidates the whole response. An unrecognised record beside a
 * documented one is ignored; alone it is `failed`. A name without records is `not_listed`, which is reliable only while
 * the list is healthy.
 */
export const decodeResponse = (list: Blocklist, { outcome, records }: ResponseToDecode): DecodedResponse => {
  if (outcome !== "response" && outcome !== "no_data" && outcome !== "nxdomain") return decodeFailure(list, outcome);
  const received =
    outcome === "response" ? [...new Set(records)].map((text) => ({ text, address: ipv4Number(text) })) : [];

  const outside = received.filter(({ address }) => address === null || !isLoopback(address));
  if (outside.length > 0) {
    const reason = `The list returned ${join(outside)}, outside 127.0.0.0/8: its domain is parked, or your resolver rewrites responses.`;
    return { outcome: "failed", cause: "outside_loopback", reason };
  }
  const addresses = received.flatMap(({ text, address }) => (address === null ? [] : [{ text, address }]));
  const refusal = addresses.map(({ address }) => findRefusal(list, address)).find((found) => found !== null);
  if (refusal) return refusal;

  const read = addresses.map((code) => ({ ...code, ...interpret(list, code.address) }));
  const listings = mergeListings(read);
  if (listings.length > 0) return { outcome: "listed", listings };
  const unknown = read.filter(({ ignored }) => ignored === null);
  if (unknown.length > 0) {
    const reason = `The list returned ${join(unknown)}, a code that it does not document.`;
    return { outcome: "failed", cause: "unrecognised", reason };
  }
  return { outcome: "not_listed", ignored: [...new Set(read.flatMap(({ ignored }) => ignored ?? []))] };
};

const join = (codes: ReadonlyArray<{ readonly text: string }>) => codes.map(({ text }) => text).join(", ");

type FailedOutcome = Exclude<DnsOutcome, "response" | "no_data" | "nxdomain">;

const FAILURE_REASONS: Readonly<Record<FailedOutcome, string>> = {
  unconfirmed: "The resolver returned an empty response that was not confirmed.",
  servfail: "The resolver returned SERVFAIL.",
  refused: "The resolver or the list refused the query (REFUSED).",
  timeout: "The query timed out.",
  malformed: "The response was not a valid DNS message.",
  network_error: "The resolver could not be reached.",
  cname_loop: "The name is a CNAME that leads nowhere.",
  invalid_name: "The name is not a valid DNS name.",
  local_failure: "This machine could not open a socket.",
  overloaded: "Too many queries were waiting.",
  aborted: "The query was cancelled.",
};
const NOT_SENT: ReadonlySet<DnsOutcome> = new Set(["invalid_name", "local_failure", "overloaded", "aborted"]);

const decodeFailure = ({ refusals }: Blocklist, outcome: FailedOutcome): DecodedResponse => {
  const refusal = refusals.find(({ outcomes }) => outcomes.includes(outcome));
  if (refusal) return { outcome: "refused", reason: refusal.reason, remedy: refusal.remedy };
  return {
    outcome: "failed",
    cause: NOT_SENT.has(outcome) ? "not_sent" : "unreachable",
    reason: FAILURE_REASONS[outcome],
  };
};

const findRefusal = (list: Blocklist, address: number): (DecodedResponse & { outcome: "refused" }) | null => {
  const declared = list.refusals.find(({ matches }) => matches.some((match) => matchesCode(match, address)));
  if (declared) return { outcome: "refused", reason: declared.reason, remedy: declared.remedy };
  if (address >= ERRORS_FIRST) return ERROR_CODE;
  if (address !== LOCALHOST) return null;
  const { codes, ignored } = interpret(list, address);
  return codes.length > 0 || ignored !== null ? null : LOCALHOST_REFUSAL;
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

const merge = (before: Listing | undefined, code: ListingCode, returnCode: string): Listing => {
  const worse = before === undefined || SEVERITIES.indexOf(code.severity) < SEVERITIES.indexOf(before.severity);
  const { name, category, severity } = worse ? code : before;
  return {
    id: code.id,
    name,
    category,
    severity,
    meanings: [...new Set([...(before?.meanings ?? []), code.meaning])],
    returnCodes: [...new Set([...(before?.returnCodes ?? []), returnCode])],
  };
};
