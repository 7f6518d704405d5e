import { afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { createLog } from "../../foundation/base/log.ts";
import { createTestClock } from "../../testing/clock.ts";
import { PolicyListener, type PolicyListenerDeps } from "./policy-listener.ts";
import type { PolicyAddress } from "./policy-settings.ts";

const ends: Array<() => void> = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

const LOOPBACK = { address: "127.0.0.1", port: 0 };
const ask = (recipient: string) =>
  `request=smtpd_access_policy\nprotocol_state=RCPT\nsender=\nrecipient=${recipient}\n\n`;

const listen = async (options: Partial<PolicyListenerDeps> = {}, at: PolicyAddress = LOOPBACK) => {
  const clock = createTestClock();
  const lines: string[] = [];
  const refused: string[] = [];
  const asked: string[] = [];
  let onRefused = (): void => undefined;
  const listener = new PolicyListener({
    ...{ clock, log: createLog("info", clock, (line) => lines.push(line)), networks: [] },
    policy: {
      answer(recipient, source) {
        asked.push(`${recipient} ${source}`);
        return recipient.startsWith("gone")
          ? { decision: "rejected_known", action: "REJECT gone" }
          : { decision: "passed", action: "DUNNO" };
      },
    },
    answered: () => undefined,
    refused(reason) {
      refused.push(reason);
      onRefused();
    },
    ...options,
  });
  ends.push(() => listener.close());
  const opened = await listener.listen(at);
  if (!opened.ok) throw new Error(opened.error);
  const untilRefused = () =>
    new Promise<void>((resolve) => {
      onRefused = resolve;
      if (refused.length > 0) resolve();
    });
  return { clock, lines, refused, asked, listener, at: opened.value, untilRefused };
};

/** A client that collects what it receives. */
const dial = (at: PolicyAddress, localAddress?: string) => {
  const socket: Socket = connect(
    "path" in at ? { path: at.path } : { host: at.address, port: at.port, ...(localAddress && { localAddress }) },
  );
  let text = "";
  let wake = (): void => undefined;
  const closed = new Promise<string>((resolve) => socket.once("close", () => resolve(text)));
  socket.on("data", (bytes) => {
    text += bytes.toString();
    wake();
  });
  socket.on("error", () => undefined);
  ends.push(() => socket.destroy());
  const until = (bytes: number) =>
    new Promise<string>((resolve) => {
      wake = () => void (text.length >= bytes && resolve(text));
      wake();
    });
  return { socket, closed, until };
};

describe("Postfix", () => {
  test("asks many questions on one connection", async () => {
    const { at, asked } = await listen();
    const { socket, until } = dial(at);
    const expected = "action=DUNNO\n\naction=REJECT gone\n\n";
    socket.write(ask("ada@x.example"));
    await until("action=DUNNO\n\n".length);
    socket.write(ask("gone@x.example"));
    expect(await until(expected.length)).toBe(expected);
    expect(asked).toEqual(["ada@x.example 127.0.0.1", "gone@x.example 127.0.0.1"]);
  });

  test("gets the answers of a thousand questions that it sends at once, in their order", async () => {
    const { at } = await listen();
    const { socket, closed } = dial(at);
    const names = Array.from({ length: 1_000 }, (_, n) => (n % 3 === 0 ? `gone${n}` : `ada${n}`));
    socket.end(names.map((name) => ask(`${name}@x.example`)).join(""));
    const expected = names.map((name) => `action=${name.startsWith("gone") ? "REJECT gone" : "DUNNO"}\n\n`).join("");
    expect(await closed).toBe(expected);
  });

  test("gets DUNNO at other states, and nothing is looked up", async () => {
    const { at, asked } = await listen();
    const { socket, until } = dial(at);
    socket.write("request=smtpd_access_policy\nprotocol_state=END-OF-MESSAGE\nrecipient=gone@x.example\n\n");
    expect(await until(1)).toBe("action=DUNNO\n\n");
    expect(asked).toEqual([]);
  });

  test("gets no answer to what is not the protocol: its default action applies", async () => {
    const { at, refused, lines, untilRefused } = await listen();
    const { socket, closed } = dial(at);
    socket.write("EHLO x.example\r\n");
    expect(await closed).toBe("");
    await untilRefused();
    expect(refused).toEqual(["not_the_protocol"]);
    expect(lines.join()).toContain("a connection to the policy service was closed");
  });
});

test("Exim sends one line, closes its side, and reads until the end", async () => {
  const { at } = await listen();
  const { socket, closed } = dial(at);
  socket.end("RCPT gone@x.example\n");
  expect(await closed).toBe("REJECT gone\n");
});

describe("a client", () => {
  test.each([
    ["that sends nothing", "", 10_000],
    ["that does not end its question", "request=smtpd", 10_000],
  ])("%s is closed after 10 seconds", async (_, text, ms) => {
    const { at, clock, listener, refused } = await listen();
    const { socket, closed } = dial(at);
    await new Promise<void>((resolve) => void socket.write(text || "", () => resolve()));
    while (listener.connections === 0) await clock.advance(0);
    await clock.advance(ms);
    expect(await closed).toBe("");
    expect(refused).toEqual(["timeout"]);
  });

  test("stays connected while it is idle for less than ten minutes", async () => {
    const { at, clock, listener } = await listen();
    const { socket, closed, until } = dial(at);
    socket.write(ask("ada@x.example"));
    await until(1);
    await clock.advance(9 * 60_000);
    expect(listener.connections).toBe(1);
    await clock.advance(60_000);
    expect(await closed).toBe("action=DUNNO\n\n");
  });

  test("of another network is closed, and of a listed one served", async () => {
    const strangers = await listen({ networks: ["192.0.2.0/24"] }, { address: "127.0.0.1", port: 0 });
    const { socket, until } = dial(strangers.at, "127.0.0.9");
    socket.write(ask("ada@x.example"));
    expect(await until(1)).toBe("action=DUNNO\n\n");
    expect(strangers.asked).toEqual(["ada@x.example 127.0.0.9"]);
  });

  test("of this machine may have any number of connections", async () => {
    const { at, listener } = await listen({ connectionsPerClientMax: 1 });
    for (const { socket, until } of [dial(at), dial(at)]) {
      socket.write(ask("ada@x.example"));
      await until(1);
    }
    expect(listener.connections).toBe(2);
  });

  const own = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .find(({ family, internal }) => family === "IPv4" && !internal)?.address;
  test.skipIf(own === undefined)("that is not this machine is closed unless its network is listed", async () => {
    const anywhere = { address: "0.0.0.0", port: 0 };
    const closing = await listen({}, anywhere);
    const from = (at: PolicyAddress) => dial({ address: own ?? "", port: "port" in at ? at.port : 0 });
    expect(await from(closing.at).closed).toBe("");
    await closing.untilRefused();
    expect(closing.refused).toEqual(["network"]);
    const serving = await listen({ networks: [`${own}/32`], connectionsPerClientMax: 1 }, anywhere);
    const { socket, until } = from(serving.at);
    socket.write(ask("ada@x.example"));
    expect(await until(1)).toBe("action=DUNNO\n\n");
    expect(await from(serving.at).closed).toBe("");
    await serving.untilRefused();
    expect(serving.refused).toEqual(["too_many"]);
  });

  test("finds no room, unless another one has been idle", async () => {
    const { at, clock, lines, listener, refused, untilRefused } = await listen({ connectionsMax: 2 });
    const [first, second] = [dial(at), dial(at)];
    for (const { socket, until } of [first, second]) {
      socket.write(ask("ada@x.example"));
      await until(1);
    }
    expect(await dial(at).closed).toBe("");
    await untilRefused();
    expect(refused).toEqual(["too_many"]);
    expect(await dial(at).closed).toBe("");
    expect(lines).toHaveLength(1);
    await clock.advance(1_000);
    const third = dial(at);
    third.socket.write(ask("gone@x.example"));
    expect(await third.until(1)).toBe("action=REJECT gone\n\n");
    expect(listener.connections).toBe(2);
    expect(await first.closed).toBe("action=DUNNO\n\n");
  });
});

describe("a Unix socket", () => {
  const pathOf = (): string => {
    const directory = mkdtempSync(join(tmpdir(), "policy-"));
    ends.push(() => rmSync(directory, { recursive: true }));
    return join(directory, "policy.sock");
  };

  test("is open to every user of the machine, and removed at the end", async () => {
    const path = pathOf();
    const { at, listener, asked } = await listen({}, { path });
    expect(statSync(path).mode & 0o777).toBe(0o666);
    const { socket, until } = dial(at);
    socket.write(ask("gone@x.example"));
    expect(await until(1)).toBe("action=REJECT gone\n\n");
    expect(asked).toEqual(["gone@x.example unix"]);
    listener.close();
    expect(statSync(path, { throwIfNoEntry: false })).toBeUndefined();
  });

  test("that another process listens on, and a file, are left alone", async () => {
    const path = pathOf();
    await listen({}, { path });
    await expect(listen({}, { path })).rejects.toThrow("another program listens there");
    const file = pathOf();
    writeFileSync(file, "mine");
    await expect(listen({}, { path: file })).rejects.toThrow("it is not a socket");
    expect(statSync(file).size).toBe(4);
  });
});

test("a port that is taken is an error in a sentence", async () => {
  const { at } = await listen();
  await expect(listen({}, at)).rejects.toThrow(
    /^The policy service cannot listen on 127\.0\.0\.1:\d+: another program/,
  );
});
