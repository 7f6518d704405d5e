import { createHash, verify } from "node:crypto";
import type { HeaderLine } from "mailauth/lib/tools.js";
import type { Clock } from "../base/clock.ts";
import { waitFor, withDeadline } from "../base/wait.ts";
import { parseDomain } from "../mail/domain.ts";
import type { DnsResolver } from "../net/dns.ts";
import { asNodeResolver, HEADER_LIMITS, limitQueries, readSignedMail, type ResolveRecords } from "./signed-mail.ts";

/** What the signatures of a header prove. */
export type HeaderProof =
  | {
      readonly kind: "signed";
      /** The DNS name of the key. */
      readonly key: string;
      /** `b=`: no other message has it. */
      readonly signature: string;
      /** The only recipient that the signed header names, as written; null when it names several, or is not clear. */
      readonly recipient: string | null;
    }
  | { readonly kind: "unsigned" }
  /** A key could not be looked up: another attempt may succeed. */
  | { readonly kind: "unknown"; readonly key: string };

const DEADLINE_MS = 15_000;
const KEY_BITS_MIN = 1_024;
const ALGORITHMS: ReadonlySet<string> = new Set(["rsa-sha256", "ed25519-sha256"]);
const RECIPIENT_CHARACTERS_MAX = 2_000;
const UNSIGNED: HeaderProof = { kind: "unsigned" };

/**
 * Verifies the DKIM signatures of these domains (lower-case A-labels) over the header of a message alone (RFC 6376 §3.7): of a
 * message that came back, the body may be missing or cut. An expired signature counts, because the message is an old one.
 */
export const proveHeader = async (
  message: Uint8Array,
  { domains, resolver, clock }: { domains: readonly string[]; resolver: DnsResolver; clock: Clock },
): Promise<HeaderProof> => {
  const mail = readSignedMail(message.subarray(0, HEADER_LIMITS.headerBytesMax));
  if (!mail.ok || mail.value.signatures === 0) return UNSIGNED;
  const { header } = mail.value;
  const done = await withDeadline(clock, { timeoutMs: DEADLINE_MS }, (signal) => {
    const keys = asNodeResolver(limitQueries(resolver, HEADER_LIMITS.signaturesMax, signal));
    const work = proveAny(header, { domains, resolve: keys.resolve }).then((proof) => {
      keys.throwBug();
      return proof;
    });
    // Work that is aborted at the deadline rejects.
    work.catch(() => undefined);
    return waitFor(clock, work, { signal });
  });
  return done.ok ? done.value : { kind: "unknown", key: domains.join(", ") };
};

interface Circumstances {
  readonly domains: readonly string[];
  readonly resolve: ResolveRecords;
}

/** The first signature that verifies decides. */
const proveAny = async (header: Buffer, circumstances: Circumstances): Promise<HeaderProof> => {
  const { parseHeaders } = await import("mailauth/lib/tools.js");
  const { parsed: fields } = parseHeaders(header);
  let doubt: HeaderProof | null = null;
  for (const { line } of fields.filter(({ key }) => key === "dkim-signature")) {
    const proof = await prove(line, fields, circumstances);
    if (proof.kind === "signed") return proof;
    if (proof.kind === "unknown") doubt ??= proof;
  }
  return doubt ?? UNSIGNED;
};

const prove = async (
  line: Buffer,
  fields: readonly HeaderLine[],
  { domains, resolve }: Circumstances,
): Promise<HeaderProof> => {
  const { parseDkimHeaders, getPublicKey, getSigningHeaderLines } = await import("mailauth/lib/tools.js");
  const { generateCanonicalizedHeader } = await import("mailauth/lib/dkim/header/index.js");
  const { parsed, original } = parseDkimHeaders(line);
  const tag = (name: string) => String(parsed[name]?.value ?? "");
  const algorithm = tag("a").toLowerCase();
  const domain = parseDomain(tag("d"));
  const names = tag("h")
    .split(":")
    .map((name) => name.trim().toLowerCase());
  if (!domain.ok || !domains.includes(domain.value.ascii) || !ALGORITHMS.has(algorithm)) return UNSIGNED;
  if (!names.includes("from") || !names.includes("to")) return UNSIGNED;
  const canonicalization = tag("c") || "simple/simple";
  if (!/^\s*(?:relaxed|simple)\s*(?:\/|$)/i.test(canonicalization)) return UNSIGNED;
  const name = `${tag("s")}._domainkey.${domain.value.ascii}`;
  const key = await getPublicKey("DKIM", name, KEY_BITS_MIN, resolve, { hashAlgo: "sha256" }).catch(codeOfError);
  if (typeof key === "string") {
    const isDefinite = key === "ENOTFOUND" || key === "ENODATA" || !isOfDns(key);
    return isDefinite ? UNSIGNED : { kind: "unknown", key: name };
  }
  if (key.testing === true) return UNSIGNED;
  const lines = getSigningHeaderLines(fields, tag("h"), true);
  const { canonicalizedHeader: text } = generateCanonicalizedHeader("DKIM", lines, {
    signatureHeaderLine: original,
    canonicalization,
  });
  const isRsa = algorithm.startsWith("rsa");
  const signed = isRsa ? text : createHash("sha256").update(text).digest();
  const isValid = verify(isRsa ? "RSA-SHA256" : null, signed, key.publicKey, Buffer.from(tag("b"), "base64"));
  return isValid ? { kind: "signed", key: name, signature: tag("b"), recipient: soleRecipient(fields) } : UNSIGNED;
};

/** The codes of mailauth for keys that cannot be used. */
const isOfDns = (code: string): boolean => !/^(?:EINVALID[A-Z]*|ESHORTKEY)$/.test(code);

/** Errors without a code are of a key that cannot be read. */
const codeOfError = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "EINVALID";

/**
 * The address in the only `To` field, where it is the only one and no `Cc` names others. Display names are written by whoever
 * registered them, and may look like an address: nothing in them counts.
 */
const soleRecipient = (fields: readonly HeaderLine[]): string | null => {
  const to = fields.filter(({ key }) => key === "to");
  const [field] = to;
  if (field === undefined || to.length > 1 || fields.some(({ key }) => key === "cc")) return null;
  const line = field.line.toString();
  if (line.length > RECIPIENT_CHARACTERS_MAX) return null;
  const unfolded = line.slice(line.indexOf(":") + 1).replace(/\r?\n/g, "");
  // input ≤ 2,000 characters
  const text = unfolded.replace(/"(?:[^"\\]|\\.)*"/g, " ");
  if (/[,;:()"]/.test(text)) return null;
  // input ≤ 2,000 characters
  const [, inBrackets, bare] = /^[^<>]*<([^<>\s]+@[^<>\s]+)>\s*$|^\s*([^\s<>]+@[^\s<>]+)\s*$/.exec(text) ?? [];
  return inBrackets ?? bare ?? null;
};
