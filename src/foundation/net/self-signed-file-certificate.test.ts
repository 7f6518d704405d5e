import { describe, expect, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isKeyPair, selfSignedCertificate } from "./self-signed-file.ts";

const NOW_MS = Date.UTC(2026, 10, 20, 12, 0, 0);
const HOST = "reports.example.test";

describe("a self-signed certificate", () => {
  const made = selfSignedCertificate(HOST, NOW_MS);
  const read = new X509Certificate(made.cert);

  test("names the host, as subject, issuer and alternative name", () => {
    expect([read.subject, read.issuer, read.subjectAltName]).toEqual([`CN=${HOST}`, `CN=${HOST}`, `DNS:${HOST}`]);
    expect(read.checkHost(HOST)).toBe(HOST);
    expect(read.checkHost("other.example.test")).toBeUndefined();
  });

  test("is signed by its own key", () => {
    expect(read.verify(read.publicKey)).toBe(true);
    expect(read.verify(new X509Certificate(selfSignedCertificate(HOST, NOW_MS).cert).publicKey)).toBe(false);
    expect(isKeyPair(made)).toBe(true);
  });

  test("is for a P-256 key", () => {
    expect(read.publicKey.asymmetricKeyType).toBe("ec");
    expect(read.publicKey.asymmetricKeyDetails?.namedCurve).toBe("prime256v1");
  });

  test("is valid for ten years, from the day before", () => {
    expect(Date.parse(read.validFrom)).toBe(Date.UTC(2026, 10, 19, 12, 0, 0));
    expect(Date.parse(read.validTo)).toBe(Date.UTC(2036, 10, 20, 12, 0, 0));
  });

  test("is no authority, and for servers", () => {
    expect(read.ca).toBe(false);
    expect(read.keyUsage).toEqual(["1.3.6.1.5.5.7.3.1"]);
  });

  test("has a serial number of its own", () => {
    const serials = Array.from({ length: 20 }, () => {
      const { serialNumber } = new X509Certificate(selfSignedCertificate(HOST, NOW_MS).cert);
      expect(serialNumber).toMatch(/^[4-7][0-9A-F]{31}$/);
      return serialNumber;
    });
    expect(new Set(serials).size).toBe(20);
  });

  test("may end after 2049, when years are written with four digits", () => {
    const late = new X509Certificate(selfSignedCertificate(HOST, Date.UTC(2045, 0, 1)).cert);
    expect(Date.parse(late.validTo)).toBe(Date.UTC(2055, 0, 1));
  });

  test("for a name of more than 64 characters has it as alternative name", () => {
    const long = `${"a".repeat(60)}.${"b".repeat(60)}.${"c".repeat(60)}.${"d".repeat(60)}.test`;
    const certificate = new X509Certificate(selfSignedCertificate(long, NOW_MS).cert);
    expect([certificate.subject, certificate.subjectAltName]).toEqual(["CN=Postwarden", `DNS:${long}`]);
    expect(certificate.verify(certificate.publicKey)).toBe(true);
  });

  test.if(Bun.which("openssl") !== null)("is one that OpenSSL takes as its own proof", () => {
    const folder = mkdtempSync(join(tmpdir(), "postwarden-cert-"));
    const path = join(folder, "cert.pem");
    writeFileSync(path, made.cert);
    const command = ["openssl", "verify", "-x509_strict", "-attime", String(NOW_MS / 1_000), "-CAfile", path, path];
    const { stdout } = Bun.spawnSync(command);
    rmSync(folder, { recursive: true });
    expect(stdout.toString()).toContain("OK");
  });
});

describe("a key pair", () => {
  const one = selfSignedCertificate(HOST, NOW_MS);
  const other = selfSignedCertificate(HOST, NOW_MS);
  test.each([
    ["another key", { cert: one.cert, key: other.key }],
    ["no key", { cert: one.cert, key: "" }],
    ["no certificate", { cert: "rubbish", key: one.key }],
    ["swapped files", { cert: one.key, key: one.cert }],
  ])("is not %s", (_name, material) => {
    expect(isKeyPair(material)).toBe(false);
  });
});
