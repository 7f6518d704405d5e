import ipaddr from "ipaddr.js";
import { isIP } from "node:net";
import { parseDomain } from "../../../foundation/mail/domain.ts";

/** Messages of one row; a higher count is an error of the reporter (RFC 9990 sets no limit). */
export const COUNT_MAX = 1_000_000_000;

/** Programs that do not know the time write 0. The example of RFC 9990 itself is of 1979. */
const FIRST_MS = 1;
const LAST_MS = Date.UTC(2100, 0, 1);
/** Unix seconds stay below this until the year 5138; higher values are milliseconds. */
const SECONDS_MAX = 1e11;

/**
 * A point in time: Unix seconds with or without a fraction, milliseconds by their size, or ISO 8601. Returns whole
 * milliseconds since 1970, or null for anything else, for zero, and for times from 2100 on.
 */
export const readTimeMs = (text: string): number | null => {
  const isNumber = /^\+?\d{1,16}(?:[.,]\d*)?$/.test(text);
  const value = isNumber ? Number(text.replace(",", ".")) : isoTimeMs(text);
  const ms = Math.floor(isNumber && value < SECONDS_MAX ? value * 1000 : value);
  return ms >= FIRST_MS && ms < LAST_MS ? ms : null;
};

/** Times without a zone are UTC, as all of a report is. */
const isoTimeMs = (text: string) => {
  const match = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)\s*(Z|[+-]\d\d:?\d\d)?)?$/i.exec(text);
  if (match === null) return Number.NaN;
  const [, day = "", time = "00:00", zone = "Z"] = match;
  return Date.parse(`${day}T${time}${zone.toUpperCase()}`);
};

/** Why a row cannot be counted. */
export type ReportRowProblem =
  | "source_ip_missing"
  | "source_ip_invalid"
  | "count_missing"
  | "count_invalid"
  | "count_zero"
  | "count_negative"
  | "count_too_large";

/** A whole number of messages from 1 to `COUNT_MAX`, or what is wrong with it. A zero fraction is ignored. */
export const readCount = (text: string): number | ReportRowProblem => {
  if (text === "") return "count_missing";
  if (!/^[+-]?\d+(?:\.0*)?$/.test(text)) return "count_invalid";
  const count = Number(text);
  if (count < 0) return "count_negative";
  if (count === 0) return "count_zero";
  return count > COUNT_MAX ? "count_too_large" : count;
};

/** An address in its canonical form: IPv6 by RFC 5952, IPv4-mapped ones as IPv4. Brackets and a zone are dropped. */
export const readSourceIp = (text: string): { readonly ip: string } | ReportRowProblem => {
  if (CANONICAL_IPV4.test(text)) return { ip: text };
  if (text === "") return "source_ip_missing";
  const bare = text.replace(/^\[(?:IPv6:)?(.*)\]$/i, "$1").replace(/%.*$/, "");
  return isIP(bare) === 0 ? "source_ip_invalid" : { ip: ipaddr.process(bare).toString() };
};

const CANONICAL_IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;

const DOMAIN_CHARACTERS_MAX = 253;

/**
 * A domain in lower-case A-labels without trailing dot; of an address, the part after the last `@`. Names that are not host
 * names (`_x.example`) are kept in lower case. Null for nothing, and for what cannot be a domain.
 */
export const readDomain = (text: string): string | null => {
  const known = domains.get(text);
  if (known !== undefined) return known;
  const domain = parsedDomain(text);
  if (domains.size >= DOMAINS_KEPT) domains.clear();
  // Copied, so that the cache does not keep the texts in memory that they are parts of.
  if (text.length <= DOMAIN_CHARACTERS_MAX) domains.set(copiedText(text), domain === null ? null : copiedText(domain));
  return domain;
};

/** The same few names are in every row of every report. */
const domains = new Map<string, string | null>();
const DOMAINS_KEPT = 2_000;

const parsedDomain = (text: string): string | null => {
  const bare = text.replace(/^<|>$/g, "");
  const name = bare.slice(bare.lastIndexOf("@") + 1).replace(/\.$/, "");
  if (name === "" || /[\s<>()"]/.test(name)) return null;
  const parsed = parseDomain(name);
  if (parsed.ok) return parsed.value.ascii;
  return name.length <= DOMAIN_CHARACTERS_MAX && /^[\x21-\x7e]+$/.test(name) ? name.toLowerCase() : null;
};

/** The text on one line; null for an empty text. */
export const readText = (text: string): string | null => {
  const line = text.replace(/\s+/g, " ").trim();
  return line === "" ? null : line;
};

/** The text as one of a set of words, ignoring case; null if it is none of them. */
export const readWord = <W extends string>(text: string, words: readonly W[]): W | null => {
  const lower = text.toLowerCase();
  return words.find((word) => word === lower) ?? null;
};

export const DISPOSITIONS = ["none", "pass", "quarantine", "reject"] as const;
export const OVERRIDES = [
  "forwarded",
  "local_policy",
  "mailing_list",
  "other",
  "policy_test_mode",
  "sampled_out",
  "trusted_forwarder",
] as const;
export const AUTH_RESULTS = [
  "none",
  "pass",
  "fail",
  "softfail",
  "neutral",
  "policy",
  "temperror",
  "permerror",
] as const;

export type Disposition = (typeof DISPOSITIONS)[number];
export type OverrideType = (typeof OVERRIDES)[number];
/** `unknown`: absent, or undefined in any RFC. */
export type AuthResult = (typeof AUTH_RESULTS)[number] | "unknown";

/** Synonyms from RFC 4408 §2.5, older drafts and Microsoft's header. */
const OLD_RESULTS: ReadonlyMap<string, AuthResult> = new Map([
  ["hardfail", "fail"],
  ["error", "temperror"],
  ["unknown", "permerror"],
  ["invalid", "permerror"],
  ["discard", "policy"],
]);

/** The result of an SPF or DKIM check (RFC 8601 §2.7). */
export const readAuthResult = (text: string): AuthResult =>
  readWord(text, AUTH_RESULTS) ?? OLD_RESULTS.get(text.toLowerCase()) ?? "unknown";

/** The aligned result: anything but `pass` is `fail`; null when it is absent. */
export const readAlignedResult = (text: string): "pass" | "fail" | null => {
  if (text === "") return null;
  return text.toLowerCase() === "pass" ? "pass" : "fail";
};

const ALIGNMENTS: ReadonlyMap<string, "r" | "s"> = new Map([
  ["r", "r"],
  ["relaxed", "r"],
  ["s", "s"],
  ["strict", "s"],
]);

/** `r` or `s`, also spelt out; null when it is absent or invalid. */
export const readAlignment = (text: string): "r" | "s" | null => ALIGNMENTS.get(text.toLowerCase()) ?? null;

/** The same text, without the longer text in memory that it is a part of. */
const copiedText = (text: string) => Buffer.from(text, "utf8").toString("utf8");
