import { describe, expect, test } from "bun:test";
import type { OnBehalfOf } from "../../foundation/base/on-behalf-of.ts";
import { settle } from "../../testing/clock.ts";
import { A, host, poolOf, question, yes } from "../../testing/probe-pool.ts";
import { IDLE_MS } from "./pool.ts";

const X: OnBehalfOf = { account: "x", priority: "realtime" };
const Y: OnBehalfOf = { account: "y", priority: "realtime" };
const LIST_OF_X: OnBehalfOf = { account: "x", priority: "bulk" };
const LIST_OF_Y: OnBehalfOf = { account: "y", priority: "bulk" };
const silent = (at: number) => host(`198.51.100.${at}`);

describe("an account whose hosts all time out", () => {
  test("leaves connections to another account's probe, which starts at once", async () => {
    const { pool, asking } = poolOf({ connectionsMax: 20 });
    for (let at = 0; at < 100; at++) void pool.probe(silent(at), question("silent"), X);
    await settle();
    expect(pool.connections()).toBe(16);
    void pool.probe(A, question("other"), Y);
    await settle();
    expect(asking().at(-1)).toBe("other");
  });

  test("has a share of its own for its lists: checks of both accounts and another one's list go on", async () => {
    const { pool, asking } = poolOf({ connectionsMax: 50 });
    for (let at = 0; at < 100; at++) void pool.probe(silent(at), question("silent"), LIST_OF_X);
    await settle();
    expect(pool.connections()).toBe(41);
    void pool.probe(host("192.0.2.10"), question("list of y"), LIST_OF_Y);
    void pool.probe(host("192.0.2.11"), question("check of x"), X);
    void pool.probe(host("192.0.2.12"), question("check of y"), Y);
    await settle();
    expect(asking().slice(41)).toEqual(["list of y", "check of x", "check of y"]);
  });

  test("gets all free connections again as its own end, and every probe gets a result", async () => {
    const { pool, asking, answer, clock } = poolOf({ connectionsMax: 10 });
    let answered = 0;
    for (let at = 0; at < 50; at++) void pool.probe(silent(at), question("silent"), X).then(() => answered++);
    await settle();
    while (asking().length > 0) {
      expect(pool.connections()).toBeLessThanOrEqual(8);
      await answer();
    }
    expect([answered, pool.waiting()]).toEqual([50, 0]);
    await clock.advance(IDLE_MS);
    expect([pool.connections(), pool.hosts()]).toEqual([0, 0]);
  });
});

describe("accounts that wait", () => {
  test("for a connection get one by turns", async () => {
    const { pool, asking, answer } = poolOf({ connectionsMax: 1, rcptPerConnectionMax: 1 });
    for (let at = 0; at < 4; at++) void pool.probe(silent(at), question(`x${at}`), X);
    for (let at = 4; at < 6; at++) void pool.probe(silent(at), question(`y${at}`), Y);
    const order: string[] = [];
    await settle();
    while (asking().length > 0) {
      order.push(...asking());
      await answer();
    }
    expect(order).toEqual(["x0", "x1", "y4", "x2", "y5", "x3"]);
  });

  test("for the same host get its answers by turns, over the same connection", async () => {
    const { pool, asking, answer, sessions } = poolOf({ connectionsMax: 10, connectionsPerHostMax: 1 });
    for (let at = 0; at < 4; at++) void pool.probe(A, question(`x${at}`), LIST_OF_X);
    for (let at = 0; at < 2; at++) void pool.probe(A, question(`y${at}`), LIST_OF_Y);
    const order: string[] = [];
    await settle();
    while (asking().length > 0) {
      order.push(...asking());
      await answer();
    }
    expect(order).toEqual(["x0", "x1", "y0", "x2", "y1", "x3"]);
    expect(sessions).toHaveLength(1);
  });

  test("for a provider's connection get one by turns", async () => {
    const limits = { connectionsMax: 50, connectionsPerProviderMax: () => 1 };
    const { pool, asking, answer } = poolOf(limits);
    const big = (at: number) => host(`198.51.100.${at}`, `mx${at}.big.example`, "big");
    for (let at = 0; at < 3; at++) void pool.probe(big(at), question(`x${at}`), X);
    void pool.probe(big(3), question("y"), Y);
    const order: string[] = [];
    await settle();
    while (asking().length > 0) {
      order.push(...asking());
      await answer();
    }
    expect(order).toEqual(["x0", "x1", "y", "x2"]);
  });
});

test("an account at its share, which waits, does not make others give their connections up", async () => {
  const never = Promise.withResolvers<never>().promise;
  const { pool, sessions } = poolOf({ connectionsMax: 10 }, (asked) =>
    asked.recipients[0] === "silent" ? never : yes(asked),
  );
  for (let at = 0; at < 50; at++) void pool.probe(silent(at), question("silent"), X);
  for (const name of ["one", "two"]) await pool.probe(A, question(name), LIST_OF_Y);
  expect(sessions.filter(({ target }) => target.address === A.address)).toHaveLength(1);
});
