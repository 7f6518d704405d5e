import { describe, expect, test } from "bun:test";
import { AppError } from "../../../foundation/base/errors.ts";
import { createTestClock } from "../../../testing/clock.ts";
import { createUploadGate } from "./report-uploads.ts";

/** A body that comes piece by piece, as the test wants. */
const dripping = () => {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  let isCancelled = false;
  const body = new ReadableStream<Uint8Array>({
    start(given) {
      controller = given;
    },
    cancel() {
      isCancelled = true;
    },
  });
  return {
    request: new Request("http://localhost/", { method: "POST", body }),
    send: (text: string) => controller?.enqueue(new TextEncoder().encode(text)),
    end: () => controller?.close(),
    isCancelled: () => isCancelled,
  };
};

const whole = (text: string) => new Request("http://localhost/", { method: "POST", body: text });
const sizes = async (files: readonly { bytes: Uint8Array }[]) => files.map(({ bytes }) => bytes.byteLength);
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const errorOf = (upload: Promise<unknown>): Promise<unknown> =>
  upload.then(
    () => "taken",
    (error: unknown) => (error instanceof AppError ? error.code : error),
  );

const start = (heldBytesMax?: number) => {
  const clock = createTestClock();
  return { clock, take: createUploadGate(clock, heldBytesMax === undefined ? undefined : { heldBytesMax }) };
};

describe("an upload", () => {
  test("that is slow does not delay others", async () => {
    const { take } = start();
    const slow = Array.from({ length: 4 }, () => dripping());
    const taken = slow.map(({ request }) => take(request, "slow", sizes));
    for (const { send } of slow) send("a");
    await turn();
    expect(await take(whole("report"), "other", sizes)).toEqual([6]);
    for (const { end } of slow) end();
    expect(await Promise.all(taken)).toEqual([[1], [1], [1], [1]]);
  });

  test("that times out is refused, and its connection closed", async () => {
    const { clock, take } = start();
    const [still, endless] = [dripping(), dripping()];
    const refused = errorOf(take(still.request, "a", sizes));
    const late = errorOf(take(endless.request, "a", sizes));
    for (let seconds = 0; seconds < 300; seconds += 30) {
      endless.send("x");
      await turn();
      await clock.advance(30_000);
    }
    expect(await refused).toBe("Invalid request body");
    expect(await late).toBe("Invalid request body");
    expect([still.isCancelled(), endless.isCancelled()]).toEqual([true, true]);
    expect(clock.pending()).toBe(0);
    expect(await take(whole("x"), "a", sizes)).toEqual([1]);
  });

  test("beyond four of an account, or above the limit of bytes, gets 503 with Retry-After", async () => {
    const { take } = start(10);
    const open = Array.from({ length: 4 }, () => dripping());
    const taken = open.map(({ request }) => take(request, "a", sizes));
    expect(await errorOf(take(whole("x"), "a", sizes))).toBe("unavailable");
    open[0]?.send("12345678");
    await turn();
    expect(await errorOf(take(whole("123"), "b", sizes))).toBe("unavailable");
    expect(await take(whole("12"), "b", sizes)).toEqual([2]);
    for (const { send, end } of open) {
      send("");
      end();
    }
    await Promise.all(taken.map(errorOf));
    expect(await take(whole("1234567890"), "a", sizes)).toEqual([10]);
  });
});
