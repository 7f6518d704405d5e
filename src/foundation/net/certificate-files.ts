import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { err, ok, type Result } from "../base/errors.ts";

/** A certificate (with its chain) and its private key, as PEM. */
export interface TlsMaterial {
  readonly cert: string;
  readonly key: string;
}

/** The operator's own files, as PEM. */
export interface CertificateFiles {
  readonly certPath: string;
  readonly keyPath: string;
}

/** Why the files cannot be used. `message` is a sentence for the operator. */
export interface CertificateFilesProblem {
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
    const reason = error instanceof Error ? error.message : String(error);
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
