import { createStubs } from "../../testing/smtp-dial.ts";
import { describe, expect, test } from "bun:test";
import { type Clock, systemClock } from "../base/clock.ts";
import { err } from "../base/errors.ts";
import { createTestClock, settle } from "../../testing/clock.ts";
import { SILENCE, type SmtpStub } from "../../testing/smtp-stub.ts";
import { createDirectConnector, type Wire } from "./connector.ts";

const stubOf = createStubs();

const connect = createDirectConnector({ clock: systemClock, mayConnect: () => true });
const to = ({ hostname, port }: SmtpStub) => ({ address: hostname, port, timeoutMs: 60_000 });

const wireTo = async (stub: SmtpStub): Promise<Wire> => {
  const wire = await connect(to(stub));
  if (!wire.ok) throw new Error(wire.error);
  return wire.value;
};

/** Collects what the wire says; `closed` resolves when it does. */
const listenTo = (wire: Wire) => {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const heard = { text: "", closes: 0 };
  wire.listen({
    data: (chunk) => {
      heard.text += Buffer.from(chunk).toString();
    },
    closed: () => {
      heard.closes++;
      resolve();
    },
  });
  return { heard, closed };
};

describe("connecting", () => {
  for (const hostname of ["127.0.0.1", "::1"]) {
    test(`${hostname} is reached, and what it said before the listener came is not lost`, async () => {
      const stub = stubOf({ hostname });
      const wire = await wireTo(stub);
      await stub.turns(0, 1);
      const { heard, closed } = listenTo(wire);
      wire.write("QUIT\r\n");
      await closed;
      expect(heard).toEqual({ text: "220 stub.example ESMTP\r\n221 2.0.0 Bye\r\n", closes: 1 });
      await stub.allClosed();
    });
  }

  test("the local address is the one asked for", async () => {
    const stub = stubOf();
    const wire = await connect({ ...to(stub), localAddress: "127.0.0.9" });
    await stub.opened();
    expect(stub.sessions[0]?.remoteAddress).toBe("127.0.0.9");
    if (wire.ok) wire.value.destroy();
    await stub.allClosed();
  });

  for (const localAddress of ["192.0.2.77", "::1", "no-address"]) {
    test(`the local address ${localAddress}, which is not to be had, is our own failure`, async () => {
      expect(await connect({ ...to(stubOf()), localAddress })).toEqual(err("local_failure"));
    });
  }

  test("a closed port is refused", async () => {
    const stub = stubOf();
    stub.stop();
    expect(await connect(to(stub))).toEqual(err("refused_or_unreachable"));
  });

  test("an address that is not allowed is never dialled", async () => {
    const stub = stubOf();
    const asked: string[] = [];
    const guarded = createDirectConnector({ clock: systemClock, mayConnect: (address) => asked.push(address) === 0 });
    expect(await guarded(to(stub))).toEqual(err("address_not_allowed"));
    expect(asked).toEqual(["127.0.0.1"]);
    expect(stub.sessions).toHaveLength(0);
  });

  test("a name instead of an address is a bug", async () => {
    await expect(connect({ address: "localhost", port: 25, timeoutMs: 1 })).rejects.toThrow("IP addresses");
  });

  test("the timer ends a connect that is under way", async () => {
    const hasty: Clock = {
      ...systemClock,
      after(_delayMs, task) {
        queueMicrotask(task);
        return () => undefined;
      },
    };
    const hurried = createDirectConnector({ clock: hasty, mayConnect: () => true });
    const stub = stubOf();
    expect(await hurried(to(stub))).toEqual(err("timeout"));
    const later = await wireTo(stub);
    await until(() => stub.sessions.filter((session) => !session.closed).length === 1);
    later.destroy();
    await stub.allClosed();
  });

  test("no timer is left after a connect, good or bad", async () => {
    const clock = createTestClock();
    const stub = stubOf();
    const timed = createDirectConnector({ clock, mayConnect: () => true });
    const wire = await timed(to(stub));
    expect(wire.ok).toBe(true);
    stub.stop();
    expect((await timed(to(stub))).ok).toBe(false);
    expect(clock.pending()).toBe(0);
  });
});

describe("wires", () => {
  test("more than the kernel takes at once arrives whole and in order", async () => {
    const stub = stubOf({ command: () => SILENCE });
    const wire = await wireTo(stub);
    listenTo(wire);
    const lines = Array.from({ length: 40_000 }, (_, index) => `NOOP ${index} ${"x".repeat(200)}`);
    wire.write(`${lines.join("\r\n")}\r\n`);
    wire.write("LAST\r\n");
    await stub.received("LAST");
    expect(stub.sessions[0]?.lines).toHaveLength(40_001);
    expect(stub.sessions[0]?.lines[39_999]).toBe(lines[39_999] ?? "");
    wire.destroy();
    await stub.allClosed();
  });

  test("end sends what is queued and closes", async () => {
    const stub = stubOf();
    const wire = await wireTo(stub);
    const { closed } = listenTo(wire);
    wire.write("NOOP\r\n");
    wire.end();
    await closed;
    await stub.received("NOOP");
    await stub.allClosed();
  });

  test("a wire that closed before the listener came tells so, and can be used without harm", async () => {
    const stub = stubOf({ banner: () => ({ raw: "", ending: "reset" }) });
    const wire = await wireTo(stub);
    await stub.allClosed();
    await settle();
    const { heard, closed } = listenTo(wire);
    await closed;
    wire.write("NOOP\r\n");
    wire.end();
    wire.destroy();
    expect(await wire.upgradeTls("mx.example.test", 60_000)).toEqual(err("tls_handshake_failed"));
    expect(heard.closes).toBe(1);
  });

  for (const serverName of ["mx.example.test", "127.0.0.1", "wrong.example"]) {
    test(`TLS for ${serverName} carries plain text to the same listener, whoever the certificate names`, async () => {
      const stub = stubOf({ starttls: "works" });
      const wire = await wireTo(stub);
      const { heard, closed } = listenTo(wire);
      wire.write("STARTTLS\r\n");
      await stub.received("STARTTLS");
      await until(() => heard.text.includes("Ready"));
      expect((await wire.upgradeTls(serverName, 60_000)).ok).toBe(true);
      heard.text = "";
      wire.write("QUIT\r\n");
      await closed;
      expect(heard).toEqual({ text: "221 2.0.0 Bye\r\n", closes: 1 });
      await stub.allClosed();
    });
  }
});

const until = async (isSo: () => boolean): Promise<void> => {
  while (!isSo()) await new Promise<void>((resolve) => setImmediate(resolve));
};
