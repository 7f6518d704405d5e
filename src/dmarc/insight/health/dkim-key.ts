import { mostFirst } from "../../../foundation/base/sums.ts";
import { quoteText } from "./section-report.ts";
import { splitRecord, type RecordTag } from "../../records/record/record-tags.ts";
import type { DkimAuthResult } from "../../reports/report/report-row.ts";
import { organisationalDomain } from "../../../foundation/mail/organisational-domain.ts";
import { nextTurn } from "../../../foundation/base/clock.ts";

/** A DKIM key record (RFC 6376 §3.6.1) as verifiers take it. */
export interface DkimKey {
  /** `invalid`: verifiers ignore the record. `revoked`: `p` is empty. */
  readonly state: "valid" | "revoked" | "invalid";
  /** Null for an algorithm that is not known. */
  readonly type: "rsa" | "ed25519" | null;
  /** Bits of the RSA modulus, 256 for Ed25519; null where there is no readable key. */
  readonly bits: number | null;
  /** `t=y`: verifiers treat signed mail as unsigned. */
  readonly isTesting: boolean;
  /** `t=s`: the domain of `i=` must equal `d=`. */
  readonly isStrict: boolean;
  /** The hash algorithms that `h` allows; null for all. */
  readonly hashes: readonly string[] | null;
  /** The service types of `s`. */
  readonly services: readonly string[];
  /** Text for administrators in `n`. */
  readonly notes: string | null;
  /** Why the record is invalid, as clauses that complete "The key …". */
  readonly faults: readonly string[];
}

const VERSION = "DKIM1";
const ED25519_OCTETS = 32;
const ED25519_BITS = 256;
/** RFC 1035 §3.2.1. */
const TEXT_CHARACTERS_MAX = 65_535;
const NOTES_CHARACTERS_MAX = 200;

/** Whether a text looks like a DKIM key record at all: names below `_domainkey` also answer wildcard TXT records. */
export const isDkimKeyText = (text: string): boolean =>
  /(?:^|[;\s])p\s*=/i.test(text) || /^\s*v\s*=\s*DKIM1/i.test(text);

/**
 * Reads the text of a TXT record as a DKIM key: RFC 6376 §3.6.1, RFC 8301 (key sizes are reported, not judged), RFC 8463
 * (Ed25519). Never throws; unknown tags are ignored, a repeated tag makes the record invalid (RFC 6376 §3.2).
 */
export const parseDkimKey = (text: string): DkimKey => {
  const faults: string[] = [];
  const tags = text.length > TEXT_CHARACTERS_MAX ? [] : tagsOf(text, faults);
  const textOf = (name: string) => tags.find((tag) => tag.name === name)?.value;
  readVersion(tags, faults);
  const type = readType(textOf("k"), faults);
  const flags = listOf(textOf("t"));
  const hashes = textOf("h") === undefined ? null : listOf(textOf("h"));
  const services = textOf("s") === undefined ? ["*"] : listOf(textOf("s"));
  const p = textOf("p")?.replace(/\s+/g, "");
  if (p === undefined) faults.push("has no p tag");
  const bits = p === undefined || p === "" || type === null ? null : readBits(p, type, faults);
  const state = faults.length > 0 ? "invalid" : p === "" ? "revoked" : "valid";
  const notes = textOf("n") ?? null;
  return {
    state,
    type,
    bits,
    isTesting: flags.includes("y"),
    isStrict: flags.includes("s"),
    hashes,
    services,
    notes: notes === null ? null : notes.slice(0, NOTES_CHARACTERS_MAX).toWellFormed(),
    faults,
  };
};

const tagsOf = (text: string, faults: string[]) => {
  const names = new Set<string>();
  const tags: RecordTag[] = [];
  for (const part of splitRecord(text)) {
    if (part.kind === "other") faults.push(`contains ${quoteText(part.text)}, which is not a tag`);
    if (part.kind !== "tag") continue;
    if (names.has(part.tag.name)) faults.push(`has more than one ${part.tag.name} tag`);
    names.add(part.tag.name);
    tags.push(part.tag);
  }
  return tags;
};

const readVersion = (tags: readonly RecordTag[], faults: string[]) => {
  const at = tags.findIndex(({ name }) => name === "v");
  const value = tags[at]?.value;
  if (value === undefined) return;
  if (value === `${VERSION}\\`) faults.push("contains backslashes before its semicolons");
  else if (value !== VERSION) faults.push(`has v=${quoteText(value)} in place of v=DKIM1`);
  else if (at > 0) faults.push("has v=DKIM1 behind other tags, but it must be the first");
};

const readType = (k: string | undefined, faults: string[]) => {
  const type = (k ?? "rsa").toLowerCase();
  if (type === "rsa" || type === "ed25519") return type;
  faults.push(`has the unknown key type ${quoteText(type)}`);
  return null;
};

const readBits = (p: string, type: "rsa" | "ed25519", faults: string[]): number | null => {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(p) || p.replace(/(?<!=)=+$/, "").length % 4 === 1) {
    faults.push("has a p tag that is not valid base64");
    return null;
  }
  const bytes = Buffer.from(p, "base64");
  if (type === "ed25519") {
    if (bytes.length === ED25519_OCTETS) return ED25519_BITS;
    faults.push(`has ${bytes.length} octets in p, but an Ed25519 key has ${ED25519_OCTETS}`);
    return null;
  }
  const key = readRsaKey(bytes);
  if (key === null) faults.push("has a p tag that holds no RSA public key, or only a part of one");
  else if (!key.hasSoundExponent) faults.push("has an unusable RSA exponent");
  return key?.bits ?? null;
};

const listOf = (value: string | undefined) =>
  (value ?? "")
    .split(":")
    .map((item) => item.trim().toLowerCase())
    .filter((item) => item !== "");

const SEQUENCE = 0x30;
const INTEGER = 0x02;
const BIT_STRING = 0x03;
const OBJECT_IDENTIFIER = 0x06;
const RSA_OID = "2a864886f70d010101";
/** A length of a key never needs more octets than this. */
const LENGTH_OCTETS_MAX = 3;

/** An RSA public key as far as its strength is concerned. */
interface RsaKeySize {
  /** Bits of the modulus. */
  readonly bits: number;
  /** Whether the public exponent is odd and greater than 1. */
  readonly hasSoundExponent: boolean;
}

/**
 * Reads the size of an RSA public key in DER: a SubjectPublicKeyInfo (RFC 5280 §4.1), which is what RFC 6376 means in practice, or
 * a bare RSAPublicKey (RFC 8017 §A.1.1), which the text of RFC 6376 §3.6.1 names. Null when it is neither. Never throws.
 */
export const readRsaKey = (der: Uint8Array): RsaKeySize | null => {
  const outer = readElement(der, 0, SEQUENCE);
  if (outer === null || outer.next !== der.length) return null;
  return readBareKey(outer.contents) ?? readWrappedKey(outer.contents);
};

const readWrappedKey = (contents: Uint8Array) => {
  const algorithm = readElement(contents, 0, SEQUENCE);
  const identifier = algorithm === null ? null : readElement(algorithm.contents, 0, OBJECT_IDENTIFIER);
  if (algorithm === null || identifier === null) return null;
  if (Buffer.from(identifier.contents).toString("hex") !== RSA_OID) return null;
  const bits = readElement(contents, algorithm.next, BIT_STRING);
  if (bits === null || bits.contents[0] !== 0) return null;
  const key = readElement(bits.contents, 1, SEQUENCE);
  return key === null ? null : readBareKey(key.contents);
};

/** The two numbers of an RSAPublicKey. */
const readBareKey = (contents: Uint8Array) => {
  const modulus = readElement(contents, 0, INTEGER);
  const exponent = modulus === null ? null : readElement(contents, modulus.next, INTEGER);
  if (modulus === null || exponent === null || exponent.next !== contents.length) return null;
  const bits = bitsOf(modulus.contents);
  const last = exponent.contents.at(-1) ?? 0;
  return bits === 0 ? null : { bits, hasSoundExponent: last % 2 === 1 && bitsOf(exponent.contents) > 1 };
};

const bitsOf = (number: Uint8Array) => {
  const start = number.findIndex((octet) => octet !== 0);
  if (start === -1) return 0;
  return (number.length - start) * 8 - (Math.clz32(number[start] ?? 0) - 24);
};

/** An element of DER (X.690 §8.1): its tag, its contents, and where the next one begins. Null for one with another tag. */
const readElement = (bytes: Uint8Array, at: number, tag: number) => {
  const first = bytes[at + 1];
  if (bytes[at] !== tag || first === undefined) return null;
  const lengthOctets = first < 0x80 ? 0 : first - 0x80;
  if (first === 0x80 || lengthOctets > LENGTH_OCTETS_MAX) return null;
  const start = at + 2 + lengthOctets;
  if (start > bytes.length) return null;
  const length =
    lengthOctets === 0 ? first : bytes.subarray(at + 2, start).reduce((sum, octet) => sum * 256 + octet, 0);
  const next = start + length;
  return next > bytes.length ? null : { tag, contents: bytes.subarray(start, next), next };
};

/** A selector whose key is to be checked. */
export interface SelectorToCheck {
  readonly selector: string;
  /** The domain of `d=`, lower-case A-labels. */
  readonly signer: string;
  readonly origin: "reports" | "request" | "common";
  /** The use of the selector by the reports; null where none names it. */
  readonly seen: SelectorUse | null;
}

/** The signatures in a record of a report. */
export interface SignedRecord {
  /** Messages. */
  readonly count: number;
  /** Whether they passed DMARC. */
  readonly isAligned: boolean;
  /** Who vouches for the report. */
  readonly voucher: number;
  readonly dkimResults: readonly DkimAuthResult[];
}

/** Where the signatures in reports are read. */
interface SignatureStore {
  signedRecords(number: number, day: number): readonly SignedRecord[];
  decidingVouchers(number: number): ReadonlySet<number>;
}

/** The signatures with a selector in reports. Days are days since 1970 (UTC). */
export interface SelectorUse {
  readonly passed: number;
  readonly failed: number;
  readonly lastDay: number;
  /** Null when none ever passed. */
  readonly lastPassedDay: number | null;
  /** Messages whose signature failed, and which passed DMARC by SPF alone, in reports on which decisions rely: those of the domain's own senders. */
  readonly vouched: number;
  /** The last day with such messages; null without any. */
  readonly lastVouchedDay: number | null;
}

/** Selectors checked in one run. */
export const SELECTORS_MAX = 30;
const COMMON =
  "google selector1 selector2 k1 k2 k3 s1 s2 default mail dkim smtp mandrill mailjet pm fm1 fm2 fm3 protonmail zoho cm";

/** The selectors that well-known services and mail servers use, at a domain. */
export const commonSelectors = (domain: string): readonly SelectorToCheck[] =>
  COMMON.split(" ").map((selector) => ({ selector, signer: domain, origin: "common", seen: null }));

/** Whether a text can be a selector: labels of letters, digits, hyphens and underscores (RFC 6376 §3.1). */
export const isSelector = (text: string): boolean =>
  text.length <= 127 && /^[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*$/i.test(text);

/** Days of reports that are read. */
export const SELECTOR_DAYS = 90;
/** Pairs counted; spoofers can make up any number of them. */
const PAIRS_MAX = 2_000;
/** Selectors without a passing signature that are checked: they may be forged. */
const UNPROVEN_MAX = 8;

type SelectorSum = { -readonly [K in keyof SelectorUse]: SelectorUse[K] } & { signer: string; selector: string };

/**
 * The selectors that sign for a domain by its reports of the last 90 days: those of signatures whose `d=` shares the domain's
 * organizational domain, in the largest records of each day. Those that passed come first, the most messages first. Reads a day in
 * a step (a millisecond), so that other work goes on meanwhile.
 */
export const findSeenSelectors = async (
  store: SignatureStore,
  { number, domain }: { readonly number: number; readonly domain: string },
  today: number,
): Promise<readonly SelectorToCheck[]> => {
  const isAligned = alignment(domain);
  const deciding = store.decidingVouchers(number);
  const sums = new Map<string, SelectorSum>();
  const add = (
    day: number,
    { count, isVouched }: { readonly count: number; readonly isVouched: boolean },
    { domain: signer, selector, result }: DkimAuthResult,
  ) => {
    if (signer === null || selector === null || result === "none" || !isSelector(selector) || !isAligned(signer))
      return;
    const key = `${selector.toLowerCase()} ${signer}`;
    const found = sums.get(key);
    if (found === undefined && sums.size >= PAIRS_MAX) return;
    const sum = found ?? {
      signer,
      selector: selector.toLowerCase(),
      passed: 0,
      failed: 0,
      lastDay: day,
      lastPassedDay: null,
      vouched: 0,
      lastVouchedDay: null,
    };
    sums.set(key, sum);
    if (result !== "pass") {
      sum.failed += count;
      if (isVouched) {
        sum.vouched += count;
        sum.lastVouchedDay ??= day;
      }
      return;
    }
    sum.passed += count;
    sum.lastPassedDay ??= day;
  };
  for (let day = today; day > today - SELECTOR_DAYS; day -= 1) {
    await nextTurn();
    for (const { count, isAligned: passes, voucher, dkimResults } of store.signedRecords(number, day)) {
      const isSigned = dkimResults.some(
        ({ domain: signer, result }) => result === "pass" && signer !== null && isAligned(signer),
      );
      for (const result of dkimResults)
        add(day, { count, isVouched: passes && !isSigned && deciding.has(voucher) }, result);
    }
  }
  return mostUsed([...sums.values()]);
};

const mostUsed = (sums: readonly SelectorSum[]): readonly SelectorToCheck[] => {
  const proven = sums.filter(({ passed, vouched }) => passed + vouched > 0);
  proven.sort((a, b) => b.passed + b.vouched - a.passed - a.vouched);
  const unproven = sums.filter(({ passed, vouched }) => passed + vouched === 0).sort(mostFirst("failed"));
  return [...proven.slice(0, SELECTORS_MAX - UNPROVEN_MAX), ...unproven.slice(0, UNPROVEN_MAX)].map(
    ({ signer, selector, ...seen }) => ({ signer, selector, origin: "reports", seen }),
  );
};

/** Relaxed alignment (RFC 9989 §4.10.1) with one domain; each signer is judged once. */
const alignment = (domain: string): ((signer: string) => boolean) => {
  const own = organisationalDomain(domain);
  const judged = new Map<string, boolean>();
  return (signer) => {
    const known = judged.get(signer) ?? (signer === domain || (own !== null && organisationalDomain(signer) === own));
    judged.set(signer, known);
    return known;
  };
};
