import { describe, expect, test } from "bun:test";
import { settle } from "../../testing/clock.ts";
import { A, B, failureOf, host, poolOf, question, yes, LIST } from "../../testing/probe-pool.ts";
import { TURN_MS } from "./pool.ts";

describe("probes of single verifications", () => {
  test("go before the list that waits for the same host", async () => {
    const { pool, answer, asking } = poolOf({ connectionsPerHostMax: 1 });
    for (const name of ["list1", "list2", "list3"]) void pool.probe(A, question(name), LIST);
    void pool.probe(A, question("person1"));
    void pool.probe(A, question("person2"));
    const order: string[] = [];
    await settle();
    while (asking().length > 0) {
      order.push(...asking());
      await answer();
    }
    expect(order).toEqual(["list1", "person1", "person2", "list2", "list3"]);
  });

  test("go before lists that wait for a connection to another host", async () => {
    const { pool, answer, asking } = poolOf({ connectionsMax: 1 });
    void pool.probe(A, question("list1"), LIST);
    void pool.probe(A, question("list2"), LIST);
    void pool.probe(host("192.0.2.3"), question("list3"), LIST);
    void pool.probe(B, question("person"));
    await settle();
    await answer();
    expect(asking()).toEqual(["person"]);
    await answer();
    expect(asking()).toEqual(["list3"]);
    await answer();
    expect(asking()).toEqual(["list2"]);
  });

  test("find a tenth of the connections free of lists", async () => {
    const { pool, asking } = poolOf({ connectionsMax: 20, connectionsPerHostMax: 1 });
    for (let at = 0; at < 30; at++) void pool.probe(host(`192.0.2.${at}`), question("list"), LIST);
    await settle();
    expect([pool.connections(), pool.waiting()]).toEqual([18, 12]);
    for (let at = 0; at < 3; at++) void pool.probe(host(`198.51.100.${at}`), question("person"));
    await settle();
    expect(asking().filter((name) => name === "person")).toHaveLength(2);
    expect([pool.connections(), pool.waiting()]).toEqual([20, 13]);
  });

  test("use the whole of a pool of one connection, as lists do", async () => {
    const { pool, asking, answer } = poolOf({ connectionsMax: 1 });
    void pool.probe(A, question("list"), LIST);
    await settle();
    expect(asking()).toEqual(["list"]);
    await answer();
    void pool.probe(B, question("person"));
    await settle();
    expect(asking()).toEqual(["person"]);
  });
});

const two = { connectionsPerProviderMax: (provider: string) => (provider === "big" ? 2 : Number.POSITIVE_INFINITY) };
const big = (at: number) => host(`198.51.100.${at}`, `mx${at}.big.example`, "big");

describe("the ceiling of a provider", () => {
  test("holds for all its addresses together, and for no one else", async () => {
    const { pool, asking } = poolOf(two);
    for (let at = 0; at < 5; at++) void pool.probe(big(at), question(`big${at}`));
    void pool.probe(A, question("other"));
    await settle();
    expect(asking()).toEqual(["big0", "big1", "other"]);
    expect(pool.waiting()).toBe(3);
  });

  test("lets those that wait go on one by one as its connections close, in their order", async () => {
    const { pool, asking, answer } = poolOf(two);
    for (let at = 0; at < 5; at++) void pool.probe(big(at), question(`big${at}`));
    await settle();
    const order: string[] = [];
    while (asking().length > 0) {
      expect(asking().length).toBeLessThanOrEqual(2);
      order.push(asking()[0] ?? "");
      await answer();
    }
    expect(order).toEqual(["big0", "big1", "big2", "big3", "big4"]);
    expect(pool.waiting()).toBe(0);
  });

  test("an idle connection is closed for another address of the provider, not for another provider's", async () => {
    const { pool, sessions } = poolOf(two, yes);
    await pool.probe(A, question("a"));
    await Promise.all([pool.probe(big(0), question("a")), pool.probe(big(1), question("b"))]);
    await pool.probe(big(2), question("c"));
    expect(sessions.map(({ target, closed }) => [target.address, closed])).toEqual([
      [A.address, false],
      ["198.51.100.0", true],
      ["198.51.100.1", false],
      ["198.51.100.2", false],
    ]);
  });

  test("a long list at one address gives its place up after its turn, at once when a person waits", async () => {
    const { pool, asking, answer, clock } = poolOf({ ...two, connectionsPerHostMax: 2 });
    for (let at = 0; at < 8; at++) void pool.probe(big(0), question(`list${at}`), LIST);
    void pool.probe(big(1), question("other list"), LIST);
    await settle();
    await answer();
    expect(asking()).toEqual(["list1", "list2"]);
    await clock.advance(TURN_MS);
    await answer();
    expect(asking()).toEqual(["list2", "other list"]);
    void pool.probe(big(2), question("person"));
    await answer();
    expect(asking()).toEqual(["other list", "person"]);
  });

  test("is nothing that a host which cannot be opened keeps", async () => {
    const { pool, asking } = poolOf(two, undefined, ({ address }) =>
      address === "198.51.100.9" ? failureOf("refused_or_unreachable", "connect") : null,
    );
    const dead = Promise.all([1, 2, 3].map(() => pool.probe(big(9), question("dead"))));
    void pool.probe(big(0), question("alive"));
    expect((await dead).map(({ connection }) => connection)).toEqual(["none", "none", "none"]);
    expect(asking()).toEqual(["alive"]);
  });
});
