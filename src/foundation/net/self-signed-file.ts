import { X509Certificate, generateKeyPairSync, randomBytes, sign, createPrivateKey } from "node:crypto";
import { chmodSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { err, ok, type Result, errorText } from "../base/errors.ts";

interface CertificateSource {
  /** Where the self-signed certificate is stored. */
  readonly dataDir: string;
  /** In A-labels. */
  readonly hostName: string;
  /** The operator's own files, as PEM; null for none. */
  readonly files: CertificateFiles | null;
  readonly clock: Clock;
}

/** Why there is no certificate. `message` is a sentence for the operator. */
interface CertificateProblem {
  readonly kind: CertificateFilesProblem["kind"] | "unwritable";
  readonly message: string;
}

const FILE_NAME = "report-tls.pem";
const RENEW_BEFORE_MS = 30 * 86_400_000;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----\n?/;
const PRIVATE_KEY = /-----BEGIN PRIVATE KEY-----[\s\S]+?-----END PRIVATE KEY-----\n?/;

/**
 * The certificate of the receiver: the operator's, else one made on this machine, which is kept in
 * `<dataDir>/report-tls.pem` (mode 0600) and renewed when the host name changed, when it expires within 30 days, or when it
 * cannot be read.
 */
export const receiverCertificate = (source: CertificateSource): Result<TlsMaterial, CertificateProblem> => {
  if (source.files !== null) return readCertificateFiles(source.files, "report mail");
  const { dataDir, hostName, clock } = source;
  const path = join(dataDir, FILE_NAME);
  const kept = readKept(path);
  if (kept !== null && isStillGood(kept, hostName, clock.nowMs())) return ok(kept);
  const made = selfSignedCertificate(hostName, clock.nowMs());
  try {
    writeOnlyForUs(path, made.cert + made.key);
    return ok(made);
  } catch (error) {
    return err({
      kind: "unwritable",
      message: `The certificate for report mail cannot be stored: ${errorText(error)}`,
    });
  }
};

/** Null when there is no file, or none that can be used: then a new one is made. */
const readKept = (path: string): TlsMaterial | null => {
  try {
    const text = readFileSync(path, "utf8");
    const cert = CERTIFICATE.exec(text)?.[0];
    const key = PRIVATE_KEY.exec(text)?.[0];
    if (cert === undefined || key === undefined) return null;
    return isKeyPair({ cert, key }) ? { cert, key } : null;
  } catch {
    return null;
  }
};

const isStillGood = ({ cert }: TlsMaterial, hostName: string, nowMs: number) => {
  const certificate = new X509Certificate(cert);
  const endsMs = Date.parse(certificate.validTo);
  return certificate.subjectAltName === `DNS:${hostName}` && endsMs - nowMs > RENEW_BEFORE_MS;
};

/** A crash in between leaves the old file or the new one, never half a key. */
const writeOnlyForUs = (path: string, text: string) => {
  const fresh = `${path}.new`;
  writeFileSync(fresh, text, { mode: 0o600 });
  // An existing file kept its mode.
  chmodSync(fresh, 0o600);
  renameSync(fresh, path);
};

// The DER is written here because node:crypto cannot issue certificates and @peculiar/x509 throws on this runtime.

/** Object identifiers, in DER. */
const OID = {
  ecdsaWithSha256: "06082a8648ce3d040302",
  commonName: "0603550403",
  keyUsage: "0603551d0f",
  subjectAltName: "0603551d11",
  basicConstraints: "0603551d13",
  extKeyUsage: "0603551d25",
  serverAuth: "06082b06010505070301",
} as const;

const TAG = { boolean: 0x01, integer: 0x02, bitString: 0x03, octetString: 0x04, utf8String: 0x0c } as const;
const TIME_TAG = { utc: 0x17, generalized: 0x18 } as const;
const SEQUENCE = 0x30;
const SET = 0x31;
/** Context tags: `version` and `extensions` of a certificate (RFC 5280 §4.1), `dNSName` of a name (§4.2.1.6). */
const CONTEXT = { version: 0xa0, extensions: 0xa3, dnsName: 0x82 } as const;

const YEARS_VALID = 10;
/** Clocks of others may be behind ours. */
const BACKDATED_MS = 86_400_000;
/** RFC 5280 §4.1.2.2 allows 20 octets; 16 random ones never meet twice. */
const SERIAL_BYTES = 16;
/** RFC 5280 appendix A.1, ub-common-name. */
const COMMON_NAME_MAX = 64;
const LONG_NAME_STANDS_FOR = "Postwarden";

/**
 * Generates a key (ECDSA, P-256) and a certificate for it that it has signed itself (X.509 v3, RFC 5280; ecdsa-with-SHA256,
 * RFC 5758 §3.2): for one host name in A-labels, as CN and as dNSName, for ten years from `nowMs`. Both are PEM.
 *
 * It does not authenticate this host; senders that do not verify certificates can encrypt with it (RFC 7435). A host name of more than
 * 64 characters is in the dNSName only.
 */
export const selfSignedCertificate = (hostName: string, nowMs: number): TlsMaterial => {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const algorithm = der(SEQUENCE, hex(OID.ecdsaWithSha256));
  const name = nameOf(hostName.length <= COMMON_NAME_MAX ? hostName : LONG_NAME_STANDS_FOR);
  const serial = randomBytes(SERIAL_BYTES);
  // Positive, and without a leading zero octet.
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40;
  const content = der(
    SEQUENCE,
    der(CONTEXT.version, der(TAG.integer, Buffer.of(2))),
    der(TAG.integer, serial),
    algorithm,
    name,
    der(SEQUENCE, time(new Date(nowMs - BACKDATED_MS)), time(yearsLater(nowMs))),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    der(CONTEXT.extensions, der(SEQUENCE, ...extensionsFor(hostName))),
  );
  const signature = sign("sha256", content, privateKey);
  const certificate = der(SEQUENCE, content, algorithm, der(TAG.bitString, Buffer.of(0), signature));
  return {
    cert: pem("CERTIFICATE", certificate),
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  };
};

/** RFC 5280 §4.2.1.9, §4.2.1.3, §4.2.1.12, §4.2.1.6: no authority, signs handshakes, is a server, has this name. */
const extensionsFor = (hostName: string): Buffer[] => [
  extension(OID.basicConstraints, true, der(SEQUENCE)),
  extension(OID.keyUsage, true, der(TAG.bitString, Buffer.of(7, 0x80))),
  extension(OID.extKeyUsage, false, der(SEQUENCE, hex(OID.serverAuth))),
  extension(OID.subjectAltName, false, der(SEQUENCE, der(CONTEXT.dnsName, Buffer.from(hostName, "ascii")))),
];

const extension = (oid: string, isCritical: boolean, value: Buffer) =>
  der(SEQUENCE, hex(oid), ...(isCritical ? [der(TAG.boolean, Buffer.of(0xff))] : []), der(TAG.octetString, value));

const nameOf = (commonName: string) =>
  der(SEQUENCE, der(SET, der(SEQUENCE, hex(OID.commonName), der(TAG.utf8String, Buffer.from(commonName)))));

const yearsLater = (nowMs: number): Date => {
  const date = new Date(nowMs);
  date.setUTCFullYear(date.getUTCFullYear() + YEARS_VALID);
  return date;
};

/** RFC 5280 §4.1.2.5: two digits of the year until 2049, four from 2050. */
const time = (date: Date): Buffer => {
  const digits = date
    .toISOString()
    .replace(/\.\d+Z$/, "Z")
    .replace(/[-:T]/g, "");
  return date.getUTCFullYear() < 2050
    ? der(TIME_TAG.utc, Buffer.from(digits.slice(2)))
    : der(TIME_TAG.generalized, Buffer.from(digits));
};

const der = (tag: number, ...contents: readonly Uint8Array[]): Buffer => {
  const content = Buffer.concat(contents);
  return Buffer.concat([Buffer.of(tag), lengthOf(content.length), content]);
};

/** ITU-T X.690 §8.1.3 and §10.1: the shortest form. */
const lengthOf = (length: number): Buffer => {
  if (length < 0x80) return Buffer.of(length);
  return length < 0x100 ? Buffer.of(0x81, length) : Buffer.of(0x82, length >> 8, length & 0xff);
};

const hex = (text: string) => Buffer.from(text, "hex");

const pem = (label: string, bytes: Buffer) => {
  const lines = bytes.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
};

/** A certificate (with its chain) and its private key, as PEM. */
export interface TlsMaterial {
  readonly cert: string;
  readonly key: string;
}

/** The operator's own files, as PEM. */
interface CertificateFiles {
  readonly certPath: string;
  readonly keyPath: string;
}

/** Why the files cannot be used. `message` is a sentence for the operator. */
interface CertificateFilesProblem {
  readonly kind: "unreadable" | "no_key_pair";
  readonly message: string;
}

/** Reads a certificate (with its chain) and its private key, and checks that they belong together. `purpose` ends "The certificate or key for". */
export const readCertificateFiles = (
  { certPath, keyPath }: CertificateFiles,
  purpose: string,
): Result<TlsMaterial, CertificateFilesProblem> => {
  try {
    const material = { cert: readFileSync(certPath, "utf8"), key: readFileSync(keyPath, "utf8") };
    if (isKeyPair(material)) return ok(material);
    const message = `${keyPath} is not the private key of the certificate in ${certPath}, or one of them is not PEM.`;
    return err({ kind: "no_key_pair", message });
  } catch (error) {
    const reason = errorText(error);
    return err({ kind: "unreadable", message: `The certificate or key for ${purpose} cannot be read: ${reason}` });
  }
};

/** Whether the text is a certificate (the first of a chain counts) and the key belongs to it. Never throws. */
export const isKeyPair = ({ cert, key }: TlsMaterial): boolean => {
  try {
    return new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
  } catch {
    return false;
  }
};
