/** What Postwarden uses of mailauth: the parts that verify, each by itself, so that nothing of it speaks HTTP. */

/** Verifies the DKIM signatures of the message that is written to it (RFC 6376). Its fields are complete when it has finished. */
declare module "mailauth/lib/dkim/dkim-verifier.js" {
  import type { Writable } from "node:stream";

  export interface VerifiedSignature {
    readonly signingDomain?: string;
    readonly selector?: string;
    readonly status: {
      /** One of RFC 8601 §2.7.1: none, pass, fail, policy, neutral, temperror, permerror. */
      readonly result: string;
      readonly comment?: string | false;
      /** How many bytes of the body the signature leaves out (`l=`). */
      readonly underSized?: number;
      /** What was accepted against RFC 6376: `identity-domain`, `tag-syntax` and others. */
      readonly warnings?: readonly string[];
      /** The key says `t=y`. */
      readonly testing?: boolean;
    };
  }
  export interface DkimVerifierOptions {
    /** As node's `dns.promises.resolve`. */
    readonly resolver: (name: string, type: string) => Promise<readonly unknown[]>;
    readonly curTime: Date;
    /** RFC 8301 §3.1. */
    readonly rejectRsaSha1: boolean;
    /** The envelope's sender; without it the header is searched for one. */
    readonly sender: string;
  }
  export class DkimVerifier extends Writable {
    constructor(options: DkimVerifierOptions);
    /** The addresses in all `From` fields. */
    readonly headerFrom: readonly string[];
    readonly fromFields: number;
    readonly results: readonly VerifiedSignature[];
  }
}

/** Evaluates SPF (RFC 7208). Never rejects for what the DNS says. */
declare module "mailauth/lib/spf/index.js" {
  export interface SpfOptions {
    /** The envelope's sender; empty for the null sender, when HELO is judged (RFC 7208 §2.4). */
    readonly sender: string;
    readonly ip: string;
    readonly helo: string;
    /** The value of the macro `r`. */
    readonly mta: string;
    readonly resolver: (name: string, type: string) => Promise<readonly unknown[]>;
  }
  export function spf(options: SpfOptions): Promise<{
    /** The domain that was judged. */
    readonly domain: string;
    readonly status: { readonly result: string };
  }>;
}

/** The one domain that the addresses of `From` are of (RFC 9989 §5.3.1). */
declare module "mailauth/lib/dmarc/author-domain.js" {
  export function getAuthorDomain(
    addresses: readonly string[],
    fromFields: number,
  ): { readonly authorDomain: string } | { readonly authorDomain?: never; readonly reason: string };
}

/** The steps of the verifier, each by itself. */
declare module "mailauth/lib/tools.js" {
  import type { KeyObject } from "node:crypto";

  export interface HeaderLine {
    /** The name of the field in lower case. */
    readonly key: string;
    readonly line: Buffer;
  }
  export interface SigningLines {
    readonly headers: readonly HeaderLine[];
  }
  export interface ParsedSignature {
    readonly parsed: Readonly<Record<string, { readonly value: unknown } | undefined>>;
    readonly original: Buffer;
  }
  export function parseHeaders(header: Buffer): { readonly parsed: readonly HeaderLine[] };
  export function parseDkimHeaders(line: Buffer): ParsedSignature;
  /** The fields that `h=` names, for verifying. */
  export function getSigningHeaderLines(parsed: readonly HeaderLine[], names: string, verify: true): SigningLines;
  /** Rejects with an error whose `code` says why there is no key. */
  export function getPublicKey(
    type: "DKIM",
    name: string,
    bitsMin: number,
    resolver: (name: string, type: string) => Promise<readonly unknown[]>,
    options: { readonly hashAlgo: string },
  ): Promise<{ readonly publicKey: string | KeyObject; readonly testing?: boolean }>;
}

/** What is signed of a header (RFC 6376 §3.7). */
declare module "mailauth/lib/dkim/header/index.js" {
  import type { SigningLines } from "mailauth/lib/tools.js";

  export function generateCanonicalizedHeader(
    type: "DKIM",
    lines: SigningLines,
    options: { readonly signatureHeaderLine: Buffer; readonly canonicalization: string },
  ): { readonly canonicalizedHeader: Buffer };
}
