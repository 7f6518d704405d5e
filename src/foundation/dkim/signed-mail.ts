import { err, ok, type Result } from "../base/errors.ts";
import { nextTurn } from "../base/clock.ts";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { VerifiedSignature } from "mailauth/lib/dkim/dkim-verifier.js";
import { parseDomain } from "../mail/domain.ts";
import type { DnsOutcome, DnsResolver, DnsResponse, DnsType } from "../net/dns.ts";

/** Limits of what the verifier gets, whose cost is quadratic in some of them. */
export const HEADER_LIMITS = {
  headerBytesMax: 128 * 1024,
  linesMax: 2_000,
  fieldBytesMax: 16 * 1024,
  fromBytesMax: 8 * 1024,
  signatureBytesMax: 8 * 1024,
  /** Consecutive white space in a signature. */
  signatureSpaceMax: 256,
  /** Signatures that are verified (RFC 6376 §6.1 allows a limit). */
  signaturesMax: 10,
  /** Of those: signatures over a part of the body (`l=`), each of which needs another hash. */
  partialSignaturesMax: 2,
  /** Of one line of the body, which the verifier buffers. RFC 5322 §2.1.1 allows 998. */
  lineBytesMax: 256 * 1024,
} as const;

/** The header of a mail, or a line of its body, exceeds the limits. */
export type HeaderProblem = "header_too_large" | "line_too_long";

/** A mail as the verifier gets it. */
export interface SignedMail {
  /** The fields in their order, with CRLF, and the empty line; without ARC fields and the signatures left out. */
  readonly header: Buffer;
  /** As it came; lines may end in LF alone. */
  readonly body: Uint8Array;
  readonly signatures: number;
  /** Signatures beyond the limits. */
  readonly leftOut: number;
  /** `From` fields; more than one is never right (RFC 5322 §3.6). */
  readonly fromFields: number;
}

/**
 * Splits a mail into header and body. Lines before the first field (blank ones, the `From ` line of an mbox) are dropped, and
 * so are ARC fields (RFC 8617), which do not concern header_from.
 */
export const readSignedMail = (bytes: Uint8Array): Result<SignedMail, HeaderProblem> => {
  const message = bytes.subarray(messageStart(bytes));
  const bodyAt = findBody(message.subarray(0, HEADER_LIMITS.headerBytesMax));
  if (bodyAt === null && message.length > HEADER_LIMITS.headerBytesMax) return err("header_too_large");
  const text = latin1(message.subarray(0, bodyAt ?? message.length));
  const lines = text.replace(/(?<!\n\r?)(?:\r?\n)+$/, "").split(/\r?\n/);
  // Consecutive bare CRs occur in no legitimate mail and are expensive to scan.
  if (lines.length > HEADER_LIMITS.linesMax || text.includes("\r".repeat(9))) return err("header_too_large");
  const fields = foldFields(lines);
  if (fields.some(isTooLong)) return err("header_too_large");

  const body = bodyAt === null ? new Uint8Array() : message.subarray(bodyAt);
  if (hasLongLine(body)) return err("line_too_long");

  const kept: string[] = [];
  const count = { signatures: 0, partial: 0, leftOut: 0 };
  for (const { name, text: field } of fields) {
    if (name.startsWith("arc-")) continue;
    if (name === "dkim-signature" && !takeSignature(field, count)) continue;
    kept.push(field);
  }
  return ok({
    header: Buffer.from(`${kept.join("\r\n")}\r\n\r\n`, "latin1"),
    body,
    signatures: count.signatures,
    leftOut: count.leftOut,
    fromFields: fields.filter(({ name }) => name === "from").length,
  });
};

interface Field {
  /** Lower case. */
  readonly name: string;
  /** All its lines, joined by CRLF. */
  readonly text: string;
}

const SPACE = 32;
/** RFC 5322 §3.6.8 and §4.5.8: white space and even a fold may stand before the colon. The verifier uses the same rule. */
const FIELD_START = /^[\x21-\x39\x3b-\x7e]+[ \t\r\n]*:/;

// input ≤ 262,144 characters
const LONG_SPACE = new RegExp(`[ \\t\\r\\n]{${HEADER_LIMITS.signatureSpaceMax + 1}}`);

const latin1 = (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");

const messageStart = (bytes: Uint8Array) => {
  const start = bytes.findIndex((byte) => byte > SPACE);
  if (start === -1) return bytes.length;
  const lineEnd = bytes.indexOf(LINE_FEED, start);
  const isMailboxLine = lineEnd !== -1 && latin1(bytes.subarray(start, start + 5)) === "From ";
  return isMailboxLine ? lineEnd + 1 : start;
};

/** Whether a line is longer than `lineBytesMax`: searches for a line end backwards from each such length. */
const hasLongLine = (body: Uint8Array) => {
  for (let at = 0; body.length - at > HEADER_LIMITS.lineBytesMax;) {
    const end = body.lastIndexOf(LINE_FEED, at + HEADER_LIMITS.lineBytesMax);
    if (end < at) return true;
    at = end + 1;
  }
  return false;
};

/** Where the body begins: behind the first empty line; null when there is none. */
const findBody = (message: Uint8Array): number | null => {
  let lineStart = 0;
  for (let at = message.indexOf(LINE_FEED); at !== -1; at = message.indexOf(LINE_FEED, at + 1)) {
    const length = at - lineStart;
    if (length === 0 || (length === 1 && message[lineStart] === RETURN)) return at + 1;
    lineStart = at + 1;
  }
  return null;
};

/** Lines that begin no field belong to the field above them; those above the first field to none. */
const foldFields = (lines: readonly string[]): readonly Field[] => {
  const starts = lines.flatMap((line, index) =>
    FIELD_START.test(`${line}\r\n${lines[index + 1] ?? ""}`) ? [index] : [],
  );
  return starts.map((start, index) => {
    const text = lines.slice(start, starts[index + 1] ?? lines.length).join("\r\n");
    return { name: text.slice(0, text.indexOf(":")).trim().toLowerCase(), text };
  });
};

const isTooLong = ({ name, text }: Field) =>
  text.length > (name === "from" ? HEADER_LIMITS.fromBytesMax : HEADER_LIMITS.fieldBytesMax);

const takeSignature = (field: string, count: { signatures: number; partial: number; leftOut: number }) => {
  const isPartial = /[:;]\s*l\s*=/i.test(field);
  const fits =
    field.length <= HEADER_LIMITS.signatureBytesMax &&
    !LONG_SPACE.test(field) &&
    count.signatures < HEADER_LIMITS.signaturesMax &&
    !(isPartial && count.partial === HEADER_LIMITS.partialSignaturesMax);
  if (!fits) count.leftOut += 1;
  else {
    count.signatures += 1;
    if (isPartial) count.partial += 1;
  }
  return fits;
};

/** The result of verifying a signature (RFC 8601 §2.7.1). */
export const SIGNATURE_RESULTS = ["pass", "fail", "policy", "neutral", "temperror", "permerror"] as const;
export type DkimSignatureResult = (typeof SIGNATURE_RESULTS)[number];

export interface DkimSignature {
  /** `d=`: lower-case A-labels where it is a domain, else as written. */
  readonly domain: string;
  readonly selector: string;
  /**
   * `fail`: header or body differ from what was signed. `policy`: it verifies, but is too weak (a short key, SHA-1, only a
   * part of the body). `neutral`: there is no key, the key is in test mode (`t=y`, RFC 6376 §3.6.1), the signature has
   * expired or cannot be parsed. `permerror`: `i=` is not within the domain in `d=` (§6.1.1), or with a key `t=s` not that
   * domain itself (§3.6.1). `temperror`: the DNS query failed.
   */
  readonly result: DkimSignatureResult;
}

/** The domain of the From field (RFC 9989: Author Domain). */
export type HeaderFrom =
  | {
      readonly kind: "domain";
      /** Lower-case A-labels. */
      readonly domain: string;
      /** Of the one address in From, in lower case; null for several. */
      readonly localPart: string | null;
    }
  /** No From field, or none with a valid domain. */
  | { readonly kind: "none" }
  /** Two From fields, or addresses of several domains: such a mail cannot be authenticated. */
  | { readonly kind: "several" };

export interface DkimVerification {
  readonly headerFrom: HeaderFrom;
  readonly signatures: readonly DkimSignature[];
}

/**
 * Verifies the DKIM signatures of a mail (RFC 6376) as of `nowMs`, and reads its header_from domain. The work is done in
 * chunks between which others have their turn. The error is what the verifier threw; rejects when the signal fires.
 */
export const verifySignatures = async (
  mail: SignedMail,
  { resolve, nowMs, signal }: { resolve: ResolveRecords; nowMs: number; signal: AbortSignal },
): Promise<Result<DkimVerification, unknown>> => {
  const { DkimVerifier } = await import("mailauth/lib/dkim/dkim-verifier.js");
  const { getAuthorDomain } = await import("mailauth/lib/dmarc/author-domain.js");
  const verifier = new DkimVerifier({
    resolver: resolve,
    curTime: new Date(nowMs),
    rejectRsaSha1: true,
    sender: "nobody@invalid",
  });
  let found: ReturnType<typeof getAuthorDomain>;
  try {
    await pipeline(Readable.from(piecesOf(mail), { objectMode: false }), verifier, { signal });
    found = getAuthorDomain(verifier.headerFrom, verifier.fromFields);
  } catch (error) {
    signal.throwIfAborted();
    return err(error);
  }
  const { results } = verifier;
  return ok({ headerFrom: headerFromOf(verifier, found), signatures: results.flatMap(signatureOf) });
};

const PIECE_BYTES = 64 * 1024;
const LINE_FEED = 10;
const RETURN = 13;
/** Longer names are cut. */
const NAME_CHARACTERS_MAX = 253;

/** The mail with CRLF, in chunks of whole lines: the verifier scans an incomplete line again with every chunk. */
async function* piecesOf({ header, body }: SignedMail): AsyncGenerator<Buffer> {
  yield header;
  for (let start = 0, end = 0; start < body.length; start = end) {
    await nextTurn();
    end = pieceEnd(body, start);
    yield withReturns(body.subarray(start, end));
  }
}

const pieceEnd = (body: Uint8Array, start: number) => {
  const last = start + PIECE_BYTES;
  if (last >= body.length) return body.length;
  const within = body.lastIndexOf(LINE_FEED, last - 1);
  if (within >= start) return within + 1;
  const behind = body.indexOf(LINE_FEED, last);
  return behind === -1 ? body.length : behind + 1;
};

/** Puts CR before every LF that has none: what is signed is the mail with CRLF (RFC 6376 §5.3). */
const withReturns = (piece: Uint8Array): Buffer => {
  let bare = 0;
  for (let at = 0; at < piece.length; at += 1) if (piece[at] === LINE_FEED && piece[at - 1] !== RETURN) bare += 1;
  if (bare === 0) return Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
  const out = Buffer.alloc(piece.length + bare);
  let to = 0;
  for (let at = 0; at < piece.length; at += 1) {
    const byte = piece[at] ?? 0;
    if (byte === LINE_FEED && piece[at - 1] !== RETURN) out[to++] = RETURN;
    out[to++] = byte;
  }
  return out;
};

const headerFromOf = (
  { fromFields, headerFrom }: { fromFields: number; headerFrom: readonly string[] },
  found: { authorDomain?: string; reason?: string },
): HeaderFrom => {
  if (found.authorDomain === undefined) {
    const isSeveral = fromFields > 1 || found.reason === "multiple-author-domains";
    return { kind: isSeveral ? "several" : "none" };
  }
  const domain = parseDomain(found.authorDomain);
  if (!domain.ok) return { kind: "none" };
  const [address = "", ...others] = headerFrom;
  const localPart = others.length > 0 ? null : address.slice(0, Math.max(0, address.lastIndexOf("@"))).toLowerCase();
  return { kind: "domain", domain: domain.value.ascii, localPart };
};

const signatureOf = ({ signingDomain, selector, status }: VerifiedSignature): readonly DkimSignature[] => {
  if (signingDomain === undefined || status.result === "none") return [];
  const domain = parseDomain(signingDomain);
  return [
    {
      domain: domain.ok ? domain.value.ascii : signingDomain.slice(0, NAME_CHARACTERS_MAX),
      selector: (selector ?? "").slice(0, NAME_CHARACTERS_MAX),
      result: resultOf(status),
    },
  ];
};

/** The warning of the verifier about an invalid `i=`, which it lets pass. */
const WRONG_IDENTITY = "identity-domain";

const resultOf = (status: VerifiedSignature["status"]): DkimSignatureResult => {
  const { result, comment, underSized, warnings, testing } = status;
  if (warnings?.includes(WRONG_IDENTITY) === true) return "permerror";
  // Treated as if it were absent, whether it verifies or not.
  if (testing === true) return "neutral";
  if (comment === "body hash did not verify") return "fail";
  if (result === "pass" && (underSized ?? 0) > 0) return "policy";
  return SIGNATURE_RESULTS.find((known) => known === result) ?? "neutral";
};

/** Longer texts are neither keys nor SPF records in use; reading them would only cost time. */
export const TXT_CHARACTERS_MAX = 8_192;

/** A query in the form of node's `dns.promises.resolve`. */
export type ResolveRecords = (name: string, type: string) => Promise<readonly unknown[]>;

/** Sends at most `queriesMax` queries; the outcome of all further ones is `overloaded`. The signal ends every wait. */
export const limitQueries = (resolver: DnsResolver, queriesMax: number, signal: AbortSignal): DnsResolver => {
  let sent = 0;
  return {
    async resolve<T extends DnsType>(name: string, type: T): Promise<DnsResponse<T>> {
      sent += 1;
      if (sent <= queriesMax) return await resolver.resolve(name, type, { signal });
      const nothing = { records: [], cnames: [], ttlS: 0, authenticated: false, server: null } as const;
      return { name, type, outcome: "overloaded", ...nothing, fromCache: false, elapsedMs: 0 };
    },
  };
};

/**
 * Gives a resolver the form of node's: records as arrays, everything else as an error with node's code. ENOTFOUND and
 * ENODATA alone are definite; a name that cannot be queried does not exist.
 */
export const asNodeResolver = (resolver: DnsResolver) => {
  let hasFailed = false;
  const bugs: unknown[] = [];
  const failure = (code: string, name: string): Error => {
    hasFailed ||= code !== "ENOTFOUND" && code !== "ENODATA";
    return Object.assign(new Error(`${code} ${name.slice(0, 255)}`), { code });
  };
  return {
    /** Whether a query had no definite response: conclusions drawn without it are not certain. */
    hasFailed: () => hasFailed,
    /** Throws what the resolver rejected with, if it did: mailauth takes every rejection for a DNS failure. */
    throwBug() {
      if (bugs.length > 0) throw bugs[0];
    },
    async resolve(name: string, type: string) {
      if (!isSupported(type)) throw failure("ENOTIMP", name);
      const response = await resolver.resolve(name, type).catch((error: unknown) => {
        bugs.push(error);
        throw error;
      });
      if (response.outcome !== "response") throw failure(codeOf(response.outcome), name);
      const records = response.records.map(nodeRecord);
      if (records.includes(null)) throw failure("EBADRESP", name);
      return records;
    },
  };
};

const TYPES = ["A", "AAAA", "MX", "PTR", "TXT"] as const;
type SupportedType = (typeof TYPES)[number];

const isSupported = (type: string): type is SupportedType => TYPES.some((supported) => supported === type);

const codeOf = (outcome: DnsOutcome) => {
  if (outcome === "no_data") return "ENODATA";
  if (outcome === "nxdomain" || outcome === "invalid_name") return "ENOTFOUND";
  // Any other code is a temporary error (RFC 7208 §4.4, RFC 6376 §6.1.2).
  return "ESERVFAIL";
};

/** Null for a record that is too long. */
const nodeRecord = (record: DnsResponse<SupportedType>["records"][number]): unknown => {
  if (typeof record !== "string") return { priority: record.preference, exchange: record.exchange };
  return record.length <= TXT_CHARACTERS_MAX ? record : null;
};
