import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { readConfig } from "../service/config.ts";
import { createTestClock } from "../testing/clock.ts";
import { silentLog } from "../testing/silent-log.ts";
import { TEST_CERTIFICATE, TEST_KEY } from "../testing/smtp-stub-key.ts";
import { describeListenFailure, HttpListener } from "./http-listener.ts";

/** The suite that a client of one version gets; null when there is none. */
const suiteOf = (port: number, options: object): Promise<string | null> =>
  new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false, ...options }, () => {
      resolve(socket.getCipher().name);
      socket.destroy();
    });
    socket.on("error", () => resolve(null));
    socket.on("close", () => resolve(null));
  });

test("TLS 1.2 has forward secrecy and authenticated encryption, and older versions are refused", async () => {
  const directory = mkdtempSync(join(tmpdir(), "postwarden-listener-"));
  const [cert, key] = [join(directory, "cert.pem"), join(directory, "key.pem")];
  writeFileSync(cert, TEST_CERTIFICATE);
  writeFileSync(key, TEST_KEY);
  const config = readConfig({ POSTWARDEN_TLS_CERT: cert, POSTWARDEN_TLS_KEY: key, POSTWARDEN_PORT: "0" });
  if (!config.ok) throw new Error(config.error.join());
  const app = { handle: async () => new Response("ok"), attach: () => undefined };
  const listener = new HttpListener({ config: config.value, app, log: silentLog, clock: createTestClock() });
  const at12 = (ciphers: string) => suiteOf(listener.port, { ciphers, minVersion: "TLSv1.2", maxVersion: "TLSv1.2" });
  try {
    expect(await at12("ECDHE-ECDSA-AES256-GCM-SHA384")).toBe("ECDHE-ECDSA-AES256-GCM-SHA384");
    expect(await at12("ECDHE-ECDSA-CHACHA20-POLY1305")).toBe("ECDHE-ECDSA-CHACHA20-POLY1305");
    expect(await at12("ECDHE-ECDSA-AES128-SHA")).toBeNull();
    expect(await at12("AES128-GCM-SHA256:AES128-SHA:AES256-SHA")).toBeNull();
    expect(await suiteOf(listener.port, { minVersion: "TLSv1.3" })).toStartWith("TLS_");
    expect(await suiteOf(listener.port, { minVersion: "TLSv1", maxVersion: "TLSv1.1" })).toBeNull();
  } finally {
    listener.destroy();
    rmSync(directory, { recursive: true });
  }
});

const failure = (code: string) => Object.assign(new Error("as the platform says it"), { code });

test.each([
  ["EADDRINUSE", "127.0.0.1", "Port 80 of 127.0.0.1 is in use by another program. Set POSTWARDEN_PORT to another one."],
  ["EADDRINUSE", "foo", 'POSTWARDEN_HOST: "foo" is not an address of this machine, or port 80 is in use.'],
  ["EADDRNOTAVAIL", "203.0.113.77", 'POSTWARDEN_HOST: "203.0.113.77" is not an address of this machine.'],
  ["EACCES", "::", "Permission denied for port 80: ports below 1024 need root or the capability CAP_NET_BIND_SERVICE."],
  ["EMFILE", "::", "Cannot listen on :::80: as the platform says it"],
])("%s of %s is a sentence that names what to change", (code, host, sentence) => {
  expect(describeListenFailure(failure(code), { host, port: 80 })).toBe(sentence);
});
