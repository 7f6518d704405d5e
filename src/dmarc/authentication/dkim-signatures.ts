import { nextTurn } from "../../base/clock.ts";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { VerifiedSignature } from "mailauth/lib/dkim/dkim-verifier.js";
import { parseDomain } from "../../mail/domain.ts";
import type { ResolveRecords } from "./authentication-dns.ts";
import type { SignedMail } from "./signed-mail.ts";

/** What a signature turned out to be. The words of RFC 8601 §2.7.1. */
export const SIGNATURE_RESULTS = ["pass", "fail", "policy", "neutral", "temperror", "permerror"] as const;
export type DkimSignatureResult = (typeof SIGNATURE_RESULTS)[number];

export interface DkimSignature {
  /** `d=`: lower-case A-labels where it is a domain, else as written. */
  readonly domain: string;
  readonly selector: string;
  /**
   * `fail`: header or body are not what was signed. `policy`: it verifies, but is too weak to prove anything (a short
   * key, SHA-1, a part of the body only). `neutral`: there is no key, it is in test mode (`t=y`, RFC 6376 §3.6.1), it has
   * expired or cannot be read. `permerror`: `i=` is not of the domain in `d=` (§6.1.1), or with a key `t=s` not that domain
   * itself (§3.6.1). `temperror`: the DNS did not say.
   */
  readonly result: DkimSignatureResult;
}

/** Whose mail it says it is. */
export type HeaderFrom =
  | { readonly kind: "domain"; /** Lower-case A-labels. */ readonly domain: string }
  /** No `From`, or none with a domain that DMARC could judge. */
  | { readonly kind: "none" }
  /** Two `From` fields, or addresses of several domains: nobody can vouch for such a mail. */
  | { readonly kind: "several" };

export interface DkimVerification {
  readonly author: HeaderFrom;
  readonly signatures: readonly DkimSignature[];
}

/**
 * Verifies the DKIM signatures of a mail (RFC 6376) at the time `nowMs`, and reads its author. The work is done in pieces,
 * with room for others in between; rejects when the signal fires, or when the verifier breaks down over the mail.
 */
export const verifySignatures = async (
  mail: SignedMail,
  { resolve, nowMs, signal }: { resolve: ResolveRecords; nowMs: number; signal: AbortSignal },
): Promise<DkimVerification> => {
  const { DkimVerifier } = await import("mailauth/lib/dkim/dkim-verifier.js");
  const { getAuthorDomain } = await import("mailauth/lib/dmarc/author-domain.js");
  const verifier = new DkimVerifier({
    resolver: resolve,
    curTime: new Date(nowMs),
    rejectRsaSha1: true,
    sender: "nobody@invalid",
  });
  await pipeline(Readable.from(piecesOf(mail), { objectMode: false }), verifier, { signal });
  const { headerFrom, fromFields, results } = verifier;
  return {
    author: authorOf(fromFields, getAuthorDomain(headerFrom, fromFields)),
    signatures: results.flatMap(signatureOf),
  };
};

const PIECE_BYTES = 64 * 1024;
const LINE_FEED = 10;
const RETURN = 13;
/** What is shown of names that are no names. */
const NAME_CHARACTERS_MAX = 253;

/** The mail with CRLF, in pieces that end with a line, because the verifier looks through an open line again with every piece. */
async function* piecesOf({ header, body }: SignedMail): AsyncGenerator<Buffer> {
  yield header;
  for (let start = 0, end = 0; start < body.length; start = end) {
    await nextTurn();
    end = pieceEnd(body, start);
    yield withReturns(body.subarray(start, end));
  }
}

const pieceEnd = (body: Uint8Array, start: number): number => {
  const last = start + PIECE_BYTES;
  if (last >= body.length) return body.length;
  const within = body.lastIndexOf(LINE_FEED, last - 1);
  if (within >= start) return within + 1;
  const behind = body.indexOf(LINE_FEED, last);
  return behind === -1 ? body.length : behind + 1;
};

/** Puts CR before every LF that has none: a signature is over the mail as SMTP carries it (RFC 6376 §5.3). */
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

const authorOf = (fromFields: number, found: { authorDomain?: string; reason?: string }): HeaderFrom => {
  if (found.authorDomain === undefined) {
    const isSeveral = fromFields > 1 || found.reason === "multiple-author-domains";
    return { kind: isSeveral ? "several" : "none" };
  }
  const domain = parseDomain(found.authorDomain);
  return domain.ok ? { kind: "domain", domain: domain.value.ascii } : { kind: "none" };
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

/** What the verifier notes about an `i=` that must not be, and lets pass. */
const WRONG_IDENTITY = "identity-domain";

const resultOf = (status: VerifiedSignature["status"]): DkimSignatureResult => {
  const { result, comment, underSized, warnings, testing } = status;
  if (warnings?.includes(WRONG_IDENTITY) === true) return "permerror";
  // To be treated as if it were not there, whether it verifies or not.
  if (testing === true) return "neutral";
  if (comment === "body hash did not verify") return "fail";
  if (result === "pass" && (underSized ?? 0) > 0) return "policy";
  return SIGNATURE_RESULTS.find((known) => known === result) ?? "neutral";
};
