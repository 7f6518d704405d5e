import { afterEach, describe, expect, test } from "bun:test";
import { systemClock } from "../base/clock.ts";
import { createTestClock, settle } from "../../testing/clock.ts";
import { createStubs } from "../../testing/smtp-dial.ts";
import { type SocksServerScript, startSocksServer } from "../../testing/socks-server.ts";
import { openSession } from "./smtp-client.ts";
import { createSocksConnector, describeSocksProblem, type SocksProblem } from "./socks-connector.ts";

const stubOf = createStubs();
const stops: Array<() => void> = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

const proxyOf = async (script: SocksServerScript, credentials: { user: string; password: string } | null = null) => {
  const server = await startSocksServer(script);
  stops.push(server.stop);
  const proxy = {
    host: "127.0.0.1",
    port: server.port,
    user: credentials?.user ?? null,
    password: credentials?.password ?? null,
  };
  const problems: SocksProblem[] = [];
  const noteProblem = (problem: SocksProblem) => void problems.push(problem);
  const connect = createSocksConnector({ clock: systemClock, mayConnect: () => true, proxy, noteProblem });
  return { server, problems, connect };
};

const target = { address: "192.0.2.25", port: 25, timeoutMs: 60_000 };

describe("through a SOCKS5 proxy", () => {
  test.each([null, { user: "bob", password: "hunter2" }])(
    "a whole SMTP dialogue works (credentials %p)",
    async (credentials) => {
      const stub = stubOf({ ehlo: ["PIPELINING"] });
      const { server, connect } = await proxyOf(credentials ?? {}, credentials);
      const session = await openSession({
        connector: connect,
        clock: systemClock,
        address: stub.hostname,
        port: stub.port,
        serverName: "mx.example",
        heloName: "probe.example",
        connectTimeoutMs: 60_000,
        replyTimeoutMs: 60_000,
      });
      if (!session.ok) throw new Error(session.error.kind);
      const answer = await session.value.probe({ mailFrom: "", recipients: ["a@example.com"], smtputf8: false });
      expect(answer.rcpts[0]?.code).toBe(250);
      expect(server.targets).toEqual([`${stub.hostname} ${stub.port}`]);
      session.value.close();
      await stub.allClosed();
    },
  );

  test.each([
    [3, "refused_or_unreachable"],
    [4, "refused_or_unreachable"],
    [5, "refused_or_unreachable"],
    [6, "refused_or_unreachable"],
    [1, "proxy_failed"],
    [2, "proxy_failed"],
  ])("reply %p of the proxy means %p", async (reply, failure) => {
    const { connect } = await proxyOf({ reply });
    expect(await connect(target)).toEqual({ ok: false, error: failure as "proxy_failed" });
  });

  test("a proxy without IPv6 fails for that target only", async () => {
    const { server, connect } = await proxyOf({ reply: 8 });
    expect(await connect({ ...target, address: "2001:db8::25" })).toEqual({
      ok: false,
      error: "refused_or_unreachable",
    });
    expect(server.targets).toEqual(["20010db8000000000000000000000025 25"]);
  });

  test.each<[string, SocksServerScript, SocksProblem]>([
    ["a wrong password", { user: "bob", password: "right" }, "login_refused"],
    ["a login that it does not offer", { greeting: [5, 0xff] }, "login_refused"],
    ["a rule against the port", { user: "bob", password: "wrong", reply: 2 }, "not_allowed"],
    ["a general failure", { user: "bob", password: "wrong", reply: 1 }, "general_failure"],
    ["the end of the connection", { hangsUp: true }, "closed"],
    ["another protocol", { greeting: [...Buffer.from("SSH-2.0-OpenSSH")] }, "not_socks5"],
  ])("%s is the proxy's failure, not the target's", async (_, script, problem) => {
    const { connect, problems } = await proxyOf(script, { user: "bob", password: "wrong" });
    expect(await connect(target)).toEqual({ ok: false, error: "proxy_failed" });
    expect(problems).toEqual([problem]);
    expect(describeSocksProblem(problem)).toMatch(/ (Check|Allow) .*\.$/);
  });

  test("a proxy that is not there is the proxy's failure", async () => {
    const { server, connect, problems } = await proxyOf({});
    server.stop();
    expect(await connect(target)).toEqual({ ok: false, error: "proxy_failed" });
    expect(problems).toEqual(["unreachable"]);
  });

  test.each<[string, SocksServerScript, string | null]>([
    ["without a login", {}, null],
    ["after a login", { user: "bob", password: "hunter2" }, "bob"],
    ["where the proxy wants no login", {}, "bob"],
  ])("silence after the negotiation may be the target's: a timeout (%s)", async (_, script, user) => {
    const clock = createTestClock();
    const server = await startSocksServer({ ...script, silentAt: "connect" });
    stops.push(server.stop);
    const proxy = { host: "127.0.0.1", port: server.port, user, password: user && "hunter2" };
    const connecting = createSocksConnector({ clock, mayConnect: () => true, proxy })({ ...target, timeoutMs: 5_000 });
    while (server.targets.length === 0) await settle();
    await clock.advance(5_000);
    expect(await connecting).toEqual({ ok: false, error: "timeout" });
  });

  test("a silent proxy ends at the deadline", async () => {
    const clock = createTestClock();
    const server = await startSocksServer({ silentAt: "greeting" });
    stops.push(server.stop);
    const proxy = { host: "127.0.0.1", port: server.port, user: null, password: null };
    const connecting = createSocksConnector({ clock, mayConnect: () => true, proxy })({ ...target, timeoutMs: 5_000 });
    await settle();
    await clock.advance(5_000);
    expect(await connecting).toEqual({ ok: false, error: "proxy_failed" });
  });

  test("is no way around the rule for public addresses: the proxy is not even asked", async () => {
    const server = await startSocksServer();
    stops.push(server.stop);
    const proxy = { host: "127.0.0.1", port: server.port, user: null, password: null };
    const connect = createSocksConnector({ clock: systemClock, mayConnect: () => false, proxy });
    expect(await connect(target)).toEqual({ ok: false, error: "address_not_allowed" });
    expect(server.targets).toEqual([]);
  });
});
