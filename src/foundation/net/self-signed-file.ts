import { X509Certificate } from "node:crypto";
import { chmodSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { err, ok, type Result } from "../base/errors.ts";
import {
  type CertificateFiles,
  type CertificateFilesProblem,
  isKeyPair,
  readCertificateFiles,
  type TlsMaterial,
} from "./certificate-files.ts";
import { selfSignedCertificate } from "./self-signed.ts";

export interface CertificateSource {
  /** Where the self-signed certificate is stored. */
  readonly dataDir: string;
  /** In A-labels. */
  readonly hostName: string;
  /** The operator's own files, as PEM; null for none. */
  readonly files: CertificateFiles | null;
  readonly clock: Clock;
}

/** Why there is no certificate. `message` is a sentence for the operator. */
export interface CertificateProblem {
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
    return err({ kind: "unwritable", message: `The certificate for report mail cannot be stored: ${textOf(error)}` });
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

const isStillGood = ({ cert }: TlsMaterial, hostName: string, nowMs: number): boolean => {
  const certificate = new X509Certificate(cert);
  const endsMs = Date.parse(certificate.validTo);
  return certificate.subjectAltName === `DNS:${hostName}` && endsMs - nowMs > RENEW_BEFORE_MS;
};

/** A crash in between leaves the old file or the new one, never half a key. */
const writeOnlyForUs = (path: string, text: string): void => {
  const fresh = `${path}.new`;
  writeFileSync(fresh, text, { mode: 0o600 });
  // An existing file kept its mode.
  chmodSync(fresh, 0o600);
  renameSync(fresh, path);
};

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
