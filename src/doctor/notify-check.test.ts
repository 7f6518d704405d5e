import { afterEach, expect, test } from "bun:test";
import { systemClock } from "../foundation/base/clock.ts";
import { createTestClock } from "../testing/clock.ts";
import { SILENCE, type SmtpStub, type SmtpStubScript, startSmtpStub } from "../testing/smtp-stub.ts";
import { TEST_CERTIFICATE } from "../testing/smtp-stub-key.ts";
import { checkNotify } from "./notify-check.ts";

const stubs: SmtpStub[] = [];
afterEach(() => {
  for (const stub of stubs.splice(0)) stub.stop();
});
const startStub = (script: SmtpStubScript = {}): SmtpStub => {
  const stub = startSmtpStub(script);
  stubs.push(stub);
  return stub;
};
const relayAt = (port: number, password: string | null = null) => ({
  notifyRelay: { host: "127.0.0.1", port, implicitTls: false, user: password && "user", password },
});
const look = (config: Parameters<typeof checkNotify>[0]["config"], clock = systemClock) =>
  checkNotify({ config, clock });

test("without a relay there is nothing to say", async () => {
  expect(await look({ notifyRelay: null })).toEqual([]);
});

test("a relay that responds is ok, and no mail is tried", async () => {
  const stub = startStub();
  expect(await look(relayAt(stub.port))).toMatchObject([{ check: "notify", state: "ok" }]);
  const said = stub.sessions.flatMap(({ lines }) => lines.map((line) => line.split(" ")[0]));
  expect(said[0]).toBe("EHLO");
  expect(said.filter((word) => word !== "EHLO" && word !== "QUIT")).toEqual([]);
});

test("a relay that is not there, refuses, or offers no TLS for a password is a failure, without the password", async () => {
  const gone = startStub();
  gone.stop();
  const refusing = startStub({ banner: () => "554 5.7.1 not you" });
  const open = startStub();
  for (const config of [relayAt(gone.port), relayAt(refusing.port), relayAt(open.port, "hunter2")]) {
    const found = await look(config);
    expect(found).toMatchObject([{ check: "notify", state: "fail" }]);
    expect(found[0]?.message).toContain("POSTWARDEN_NOTIFY_SMTP_URL");
    expect(JSON.stringify(found)).not.toContain("hunter2");
  }
  expect(open.sessions.flatMap(({ lines }) => lines).join()).not.toContain("AUTH");
});

test("a relay that says nothing is a failure after ten seconds", async () => {
  const clock = createTestClock();
  const stub = startStub({ command: () => SILENCE });
  const looking = look(relayAt(stub.port), clock);
  await stub.received("EHLO");
  await clock.advance(10_000);
  expect((await looking)[0]?.message).toContain("no response within 10 seconds");
});

/** Accepts the password "hunter2" over TLS, as AUTH PLAIN. */
const startSubmission = (): SmtpStub =>
  startStub({
    starttls: "works",
    ehlo: ["AUTH PLAIN"],
    command: (line) => {
      if (!line.startsWith("AUTH PLAIN ")) return undefined;
      const isRight = Buffer.from(line.slice(11), "base64").toString() === "\0user\0hunter2";
      return isRight ? "235 2.7.0 Authentication successful" : "535 5.7.8 Error: authentication failed";
    },
  });

test.each([
  ["hunter2", "ok", "TLS works; the login is accepted."],
  ["hunter3", "fail", "535 5.7.8"],
])("the login with the password %s is tried over TLS", async (password, state, message) => {
  const stub = startSubmission();
  const config = relayAt(stub.port, password);
  const found = await checkNotify({
    config,
    clock: systemClock,
    tls: { ca: TEST_CERTIFICATE, servername: "mx.example.test" },
  });
  expect(found).toMatchObject([{ check: "notify", state: state as "ok" }]);
  expect(found[0]?.message).toContain(message);
  expect(JSON.stringify(found)).not.toContain(password);
  const said = stub.sessions.flatMap(({ lines }) => lines.map((line) => line.split(" ")[0]));
  expect(said.filter((word) => word === "MAIL")).toEqual([]);
});

test("a relay whose certificate nobody vouches for gets no password", async () => {
  const stub = startSubmission();
  expect(await look(relayAt(stub.port, "hunter2"))).toMatchObject([{ check: "notify", state: "fail" }]);
  expect(stub.sessions.flatMap(({ lines }) => lines).join()).not.toContain("AUTH");
});

test("a relay on another machine without TLS is a warning", async () => {
  const stub = startStub({ ehlo: ["SIZE 1"] });
  const relay = { host: "127.0.0.1", port: stub.port, implicitTls: false, user: null, password: null };
  expect(await look({ notifyRelay: relay })).toMatchObject([
    { state: "ok", message: expect.stringContaining("without TLS") },
  ]);
  const remote = { ...relay, host: "0.0.0.0" };
  expect(await look({ notifyRelay: remote })).toMatchObject([
    { state: "warn", message: expect.stringContaining("clear text") },
  ]);
});
