import { describe, expect, test } from "bun:test";
import { createApps } from "../../testing/app.ts";
import { createTestClock } from "../../testing/clock.ts";
import { readBytes } from "./body.ts";
import { createBudgets, trackRequest, releaseBody } from "./request-memory.ts";

const MIB = 1024 * 1024;
const start = createApps();

const newWorld = () => {
  const clock = createTestClock();
  const budgets = createBudgets(clock);
  const post = (owner: string, body: string | ReadableStream, headers: Record<string, string> = {}) => {
    const request = new Request("http://localhost/", { method: "POST", body, headers });
    trackRequest(request, owner, budgets);
    return request;
  };
  return { clock, budgets, post };
};

/** A body of which nothing more arrives. */
const stuck = (bytes: number) =>
  new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new Uint8Array(bytes)),
  });

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const errorOf = (reading: Promise<unknown>): Promise<unknown> =>
  reading.then(
    () => "read",
    (error: unknown) => (error instanceof Error && "code" in error ? error.code : error),
  );

describe("open request bodies", () => {
  test.each([
    ["as they are declared", { "content-length": String(8 * MIB) }],
    ["as they arrive", {}],
  ])("count for their account %s, until the request is answered", async (_, headers) => {
    const { budgets, post } = newWorld();
    const open = Array.from({ length: 2 }, () => post("a", stuck(8 * MIB), headers));
    for (const request of open) void readBytes(request, 8 * MIB).catch(() => undefined);
    await turn();
    expect(budgets.bodies.held).toBe(16 * MIB);
    expect(await errorOf(readBytes(post("a", "x"), MIB))).toBe("unavailable");
    expect(await errorOf(readBytes(post("b", "x"), MIB))).toBe("read");
    for (const request of open) releaseBody(request);
    expect(budgets.bodies.held).toBe(1);
    expect(await errorOf(readBytes(post("a", "x"), MIB))).toBe("read");
  });

  test("of all callers together have a ceiling too", async () => {
    const { post } = newWorld();
    for (let owner = 0; owner < 16; owner++)
      void readBytes(post(`a${owner}`, stuck(1), { "content-length": String(16 * MIB) }), 16 * MIB).catch(
        () => undefined,
      );
    expect(await errorOf(readBytes(post("e", "x"), MIB))).toBe("unavailable");
  });

  test("leave nothing behind: the whole memory of an account can be taken again and again", () => {
    const { bodies } = createBudgets(createTestClock());
    for (let round = 0; round < 3; round++) {
      expect([bodies.take("a", 16 * MIB), bodies.take("a", 1)]).toEqual([true, false]);
      bodies.give("a", 16 * MIB);
    }
    expect(bodies.held).toBe(0);
  });

  test("count less, but not nothing, when a part is released", () => {
    const { bodies } = createBudgets(createTestClock());
    bodies.take("a", 16 * MIB);
    bodies.give("a", 1);
    expect([bodies.take("a", 2), bodies.take("a", 1)]).toEqual([false, true]);
  });

  test.each([
    [64 * 1024, undefined],
    [64 * 1024 + 1, "close"],
  ])(
    "of %d bytes that are refused: the connection ends rather than the rest being read: %p",
    async (bytes, connection) => {
      const { post } = newWorld();
      void readBytes(post("a", stuck(1), { "content-length": String(16 * MIB) }), 16 * MIB).catch(() => undefined);
      const refused = readBytes(post("a", stuck(1), { "content-length": String(bytes) }), MIB).catch((error) => error);
      expect((await refused).details.headers.connection).toBe(connection);
    },
  );

  test("that have not arrived after two minutes are refused", async () => {
    const { clock, post } = newWorld();
    const reading = errorOf(readBytes(post("a", stuck(1)), MIB));
    await turn();
    await clock.advance(120_000);
    expect(await reading).toBe("Invalid request body");
    expect(clock.pending()).toBe(0);
  });

  test("are given back by every request that is answered, however it ends", async () => {
    const app = start();
    const key = app.newKey();
    const bodies = ['{"email":"a@any.example"}', "{", '{"nothing":1}', "x".repeat(2 * MIB)];
    for (let round = 0; round < 40; round++) {
      for (const body of bodies)
        expect((await app.request("POST", "/v1/blacklist/targets", { key, body })).status).not.toBe(503);
    }
  });
});

test("a key is looked at before the body: without one nothing of it is read", async () => {
  const app = start();
  let isRead = false;
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        isRead = true;
        controller.close();
      },
    },
    { highWaterMark: 0 },
  );
  expect((await app.request("POST", "/v1/bulk-verifications", { body })).status).toBe(401);
  expect(isRead).toBe(false);
});
