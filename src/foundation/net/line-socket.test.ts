import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { err, ok, type Result } from "../base/errors.ts";
import { createTestClock } from "../../testing/clock.ts";
import type { Wire, WireHandlers } from "./connector.ts";
import { LineSocket, QUIT_WAIT_MS, SESSION_BYTES_MAX, TranscriptRecorder } from "./line-socket.ts";

/** A wire in memory: the test plays the server. */
const createFakeWire = (tls: Result<void, "tls_handshake_failed"> = ok(undefined)) => {
  let handlers: WireHandlers | null = null;
  const state: { written: string; ended: boolean; destroyed: boolean } = {
    written: "",
    ended: false,
    destroyed: false,
  };
  const close = () => {
    const { destroyed } = state;
    state.destroyed = true;
    if (!destroyed) handlers?.closed();
  };
  const wire: Wire = {
    listen: (given) => {
      handlers = given;
    },
    write: (data) => {
      state.written += typeof data === "string" ? data : Buffer.from(data).toString();
    },
    end: () => {
      state.ended = true;
    },
    destroy: close,
    upgradeTls: () => Promise.resolve(tls),
  };
  const say = (text: string | Uint8Array) => {
    if (!state.destroyed) handlers?.data(typeof text === "string" ? Buffer.from(text, "latin1") : text);
  };
  return { wire, state, say, close };
};

const REPLY_MS = 30_000;

const setUp = (endsAtMs: number | null = null, tls: Result<void, "tls_handshake_failed"> = ok(undefined)) => {
  const clock = createTestClock();
  const fake = createFakeWire(tls);
  const transcript = new TranscriptRecorder(clock, clock.monotonicMs());
  const line = new LineSocket({ wire: fake.wire, clock, transcript, endsAtMs });
  return { clock, line, transcript, ...fake, read: () => line.readReply(clock.monotonicMs() + REPLY_MS) };
};

describe("deadlines", () => {
  test("a reply that drips a byte a second ends at the deadline of the whole reply", async () => {
    const { clock, line, say, read, state } = setUp();
    const reply = read();
    for (let second = 0; second < 29; second++) {
      say("220-a server that never comes to the point"[second] ?? " ");
      await clock.advance(1_000);
    }
    expect(line.problem).toBeNull();
    await clock.advance(1_000);
    expect(await reply).toEqual(err("timeout"));
    expect(state.destroyed).toBe(true);
    expect(clock.pending()).toBe(0);
  });

  test("each wait has its own deadline", async () => {
    const { clock, line, say, read } = setUp();
    const banner = read();
    await clock.advance(20_000);
    say("220 hi\r\n");
    expect((await banner).ok).toBe(true);
    line.send(["EHLO x"]);
    const ehlo = read();
    await clock.advance(20_000);
    expect(line.problem).toBeNull();
    say("250 hi\r\n");
    expect((await ehlo).ok).toBe(true);
    await clock.advance(3 * REPLY_MS);
    expect(line.problem).toBeNull();
    expect(clock.pending()).toBe(0);
  });

  test("a wait that began later than its predecessor's timer ends at its own moment", async () => {
    const { clock, line, say, read } = setUp();
    const banner = read();
    await clock.advance(20_000);
    say("220 hi\r\n");
    await banner;
    line.send(["EHLO x"]);
    const ehlo = read();
    await clock.advance(REPLY_MS - 1);
    expect(line.problem).toBeNull();
    await clock.advance(1);
    expect(await ehlo).toEqual(err("timeout"));
  });

  test("the session's deadline comes first when it is earlier, also between two replies", async () => {
    const { clock, say, read, state } = setUp(40_000);
    const banner = read();
    say("220 hi\r\n");
    await banner;
    await clock.advance(39_999);
    expect(state.destroyed).toBe(false);
    await clock.advance(1);
    expect(state.destroyed).toBe(true);
    expect(await read()).toEqual(err("deadline"));
  });
});

describe("what the server may say", () => {
  test("replies that came before the end can still be read", async () => {
    const { line, say, close, read } = setUp();
    line.send(["MAIL", "RCPT"]);
    say("220 hi\r\n250 ok\r\n");
    close();
    expect(
      [await read(), await read(), await read()].map((reply) => (reply.ok ? reply.value.code : reply.error)),
    ).toEqual([220, 250, "closed"]);
  });

  test("a whole reply that nobody is owed is a surplus", async () => {
    const { line, say, state } = setUp();
    say("220 hi\r\n");
    expect(line.problem).toBeNull();
    say("250 what you did not ask\r\n");
    expect(line.problem).toBe("surplus_reply");
    expect(state.destroyed).toBe(true);
  });

  for (const [name, chunks] of [
    ["in the same chunk", ["220 hi\r\n25"]],
    ["in a chunk of its own", ["220 hi\r\n", "2"]],
  ] as const) {
    test(`the beginning of a reply that nobody is owed is a surplus (${name})`, () => {
      const { line, say } = setUp();
      for (const chunk of chunks) say(chunk);
      expect(line.problem).toBe("surplus_reply");
    });
  }

  test("an unasked 421 is the server's way to close", () => {
    const { line, say } = setUp();
    say("220 hi\r\n421 4.4.2 too slow\r\n");
    expect(line.problem).toBe("closed");
  });

  test("a session may not say more than its ceiling, even in proper replies", () => {
    const { line, say, state } = setUp();
    const reply = `250 ${"x".repeat(508)}\r\n`;
    line.send(Array.from({ length: 1_000 }, () => "NOOP"));
    for (let sent = 0; sent + reply.length <= SESSION_BYTES_MAX; sent += reply.length) say(reply);
    expect(line.problem).toBeNull();
    say(reply);
    expect(line.problem).toBe("bytes_max");
    expect(state.destroyed).toBe(true);
  });

  test("garbage stands in the transcript, short and without control characters", () => {
    const { transcript, say } = setUp();
    say(`\x1b[2Jgarbage\x00${"y".repeat(2_000)}\r\n`);
    const [shown] = transcript.lines();
    expect(shown?.text).toStartWith(".[2Jgarbage.yyy");
    expect(shown?.text.length).toBeLessThanOrEqual(200);
  });

  test("however the bytes are cut, the replies are the same", async () => {
    const said = "220-tea\r\n220 ser\r\n250-x\r\n250-PIPELINING\r\n250 SIZE 1\r\n250 ok\r\n550 5.1.1 gone\r\n";
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 0, max: said.length }), { maxLength: 12 }), async (cuts) => {
        const { line, say, read } = setUp();
        line.send(["EHLO", "MAIL", "RCPT"]);
        const ends = [...cuts.sort((a, b) => a - b), said.length];
        for (const [index, end] of ends.entries()) say(said.slice(ends[index - 1] ?? 0, end));
        const codes: number[] = [];
        for (let i = 0; i < 4; i++) {
          const reply = await read();
          if (reply.ok) codes.push(reply.value.code);
        }
        expect(codes).toEqual([220, 250, 250, 550]);
        expect(line.problem).toBeNull();
      }),
      { numRuns: 200 },
    );
  });

  test("whatever bytes come, a session ends by its deadlines", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 10 }), async (chunks) => {
        const { clock, line, say, read } = setUp(60_000);
        const reply = read();
        for (const chunk of chunks) say(chunk);
        await clock.advance(60_000);
        expect(typeof (await reply).ok).toBe("boolean");
        expect(line.problem).not.toBeNull();
        expect(clock.pending()).toBe(0);
      }),
      { numRuns: 100 },
    );
  });
});

describe("TLS", () => {
  test("clear text beside the answer to STARTTLS is forgotten, half a line as well", async () => {
    const { line, clock, say, read } = setUp();
    say("220 hi\r\n");
    await read();
    const started = line.startTls("mx.example", clock.monotonicMs() + REPLY_MS);
    say("220 go\r\n250 injected\r\n25");
    expect((await started).ok).toBe(true);
    line.send(["EHLO x"]);
    say("250 over TLS\r\n");
    const reply = await read();
    expect(reply.ok && reply.value.text).toBe("over TLS");
    expect(line.problem).toBeNull();
  });

  test("a failed handshake is distinguished from a closed connection", async () => {
    const { line, clock, say, read, state } = setUp(null, err("tls_handshake_failed"));
    say("220 hi\r\n");
    await read();
    const started = line.startTls("mx.example", clock.monotonicMs() + REPLY_MS);
    say("220 go\r\n");
    expect(await started).toEqual(err("tls_failed"));
    expect(state.destroyed).toBe(true);
  });

  test("after a refused STARTTLS a surplus counts again", async () => {
    const { line, clock, say, read } = setUp();
    say("220 hi\r\n");
    await read();
    const started = line.startTls("mx.example", clock.monotonicMs() + REPLY_MS);
    say("454 not now\r\n");
    expect((await started).ok).toBe(true);
    say("250 by the way\r\n");
    expect(line.problem).toBe("surplus_reply");
  });
});

describe("leaving", () => {
  test("QUIT, then the answer, then our end of the wire closes", async () => {
    const { line, clock, say, read, state, close } = setUp();
    say("220 hi\r\n");
    await read();
    line.quit();
    expect(state.written).toBe("QUIT\r\n");
    expect(state.ended).toBe(false);
    say("221 bye\r\n");
    expect(state.ended).toBe(true);
    close();
    expect(clock.pending()).toBe(0);
  });

  test("nobody waits longer than the bound for the answer to QUIT", async () => {
    const { line, clock, say, read, state } = setUp();
    say("220 hi\r\n");
    await read();
    line.quit();
    line.quit();
    expect(await read()).toEqual(err("closed"));
    await clock.advance(QUIT_WAIT_MS - 1);
    expect(state.destroyed).toBe(false);
    await clock.advance(1);
    expect(state.destroyed).toBe(true);
    expect(state.written).toBe("QUIT\r\n");
  });

  test("a wait that is under way ends as closed", async () => {
    const { line, read } = setUp();
    const reply = read();
    line.quit();
    expect(await reply).toEqual(err("closed"));
  });
});
