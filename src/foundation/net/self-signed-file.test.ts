import { afterEach, describe, expect, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTestClock } from "../../testing/clock.ts";
import { selfSignedCertificate, receiverCertificate } from "./self-signed-file.ts";

const HOST = "reports.example.test";
const DAY_MS = 86_400_000;
const folders: string[] = [];

const newFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "postwarden-cert-"));
  folders.push(folder);
  return folder;
};

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

const startWorld = () => {
  const dataDir = newFolder();
  const clock = createTestClock();
  const path = join(dataDir, "report-tls.pem");
  const get = (hostName = HOST) => {
    const material = receiverCertificate({ dataDir, hostName, files: null, clock });
    if (!material.ok) throw new Error(material.error.message);
    return material.value;
  };
  return { dataDir, clock, path, get };
};

describe("a certificate of our own", () => {
  test("is made once and kept, for our eyes only", () => {
    const { dataDir, path, get } = startWorld();
    const made = get();
    expect(get()).toEqual(made);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(dataDir)).toEqual(["report-tls.pem"]);
  });

  test("is made anew for another host name", () => {
    const { get } = startWorld();
    get();
    expect(new X509Certificate(get("other.example.test").cert).subjectAltName).toBe("DNS:other.example.test");
  });

  test("is made anew thirty days before it ends, not sooner", async () => {
    const { clock, get } = startWorld();
    const made = get();
    const leftMs = Date.parse(new X509Certificate(made.cert).validTo) - clock.nowMs();
    await clock.advance(leftMs - 31 * DAY_MS);
    expect(get()).toEqual(made);
    await clock.advance(DAY_MS);
    expect(get()).not.toEqual(made);
  });

  test.each([
    ["rubbish", () => "rubbish"],
    ["empty", () => ""],
    ["cut short", (text: string) => text.slice(0, -40)],
    ["of two halves", (text: string) => text.replace(/-----BEGIN PRIVATE[\s\S]*/, selfSignedCertificate(HOST, 0).key)],
  ])("is made anew when the file is %s, and is private again", (_name, damage) => {
    const { path, get } = startWorld();
    const made = get();
    writeFileSync(path, damage(readFileSync(path, "utf8")));
    chmodSync(path, 0o644);
    const again = get();
    expect(again).not.toEqual(made);
    expect(get()).toEqual(again);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test("that cannot be kept is a sentence", () => {
    const { clock } = startWorld();
    const dataDir = "/nowhere/at/all";
    expect(receiverCertificate({ dataDir, hostName: HOST, files: null, clock })).toMatchObject({
      ok: false,
      error: { kind: "unwritable" },
    });
  });
});

describe("the operator's certificate", () => {
  const files = (cert: string, key: string) => {
    const folder = newFolder();
    const paths = { certPath: join(folder, "cert.pem"), keyPath: join(folder, "key.pem") };
    writeFileSync(paths.certPath, cert);
    writeFileSync(paths.keyPath, key);
    return paths;
  };
  const get = (paths: { certPath: string; keyPath: string }) =>
    receiverCertificate({ dataDir: "/nowhere/at/all", hostName: HOST, files: paths, clock: createTestClock() });

  test("is taken as it is, chain and all", () => {
    const made = selfSignedCertificate("mx.example.test", 0);
    const chain = made.cert + selfSignedCertificate("ca.example.test", 0).cert;
    expect(get(files(chain, made.key))).toEqual({ ok: true, value: { cert: chain, key: made.key } });
  });

  test("with the key of another is a sentence", () => {
    const [one, other] = [selfSignedCertificate(HOST, 0), selfSignedCertificate(HOST, 0)];
    expect(get(files(one.cert, other.key))).toMatchObject({ ok: false, error: { kind: "no_key_pair" } });
  });

  test("that is not there is a sentence", () => {
    const missing = get({ certPath: "/nowhere/cert.pem", keyPath: "/nowhere/key.pem" });
    expect(missing).toMatchObject({ ok: false, error: { kind: "unreadable" } });
  });
});
