import { afterEach, describe, expect, test } from "bun:test";
import { systemClock } from "../base/clock.ts";
import { createTestClock, settle } from "../testing/clock.ts";
import { createStubs } from "../testing/smtp-dial.ts";
import { type SocksServerScript, startSocksServer } from "../testing/socks-server.ts";
import { openSession } from "./smtp-client.ts";
import { createSocksConnector } from "./socks-connector.ts";

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
  return { server, connect: createSocksConnector({ clock: systemClock, mayConnect: () => true, proxy }) };
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

  test("a wrong password is the proxy's failure, not the target's", async () => {
    const { connect } = await proxyOf({ user: "bob", password: "right" }, { user: "bob", password: "wrong" });
    expect(await connect(target)).toEqual({ ok: false, error: "proxy_failed" });
  });

  test("a proxy that is not there is the proxy's failure", async () => {
    const { server, connect } = await proxyOf({});
    server.stop();
    expect(await connect(target)).toEqual({ ok: false, error: "proxy_failed" });
  });

  test("a silent proxy ends at the deadline", async () => {
    const clock = createTestClock();
    const server = await startSocksServer({ silent: true });
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
