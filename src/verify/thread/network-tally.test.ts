import { expect, test } from "bun:test";
import { addTally, NetworkTally } from "./network-tally.ts";

const countIn = (tally: NetworkTally): void => {
  for (let times = 0; times < 3; times++) tally.dnsQueries.inc({ type: "MX", outcome: "response", cached: "false" });
  tally.dnsQueries.inc({ type: "A", outcome: "timeout", cached: "false" });
  tally.failures.inc({ stage: "connect", kind: "timeout" });
  tally.replies.inc({ command: "rcpt", class: "2xx" }, 2);
  tally.dnsSeconds.observe(0.1);
  tally.openSeconds.observe({ result: "opened" }, 0.2);
  tally.openSeconds.observe({ result: "failed" }, 0.3);
  tally.sessionSeconds.observe(0.4);
};

test("what was counted is taken once, and adds up elsewhere to the same", () => {
  const [one, other] = [new NetworkTally(), new NetworkTally()];
  countIn(one);
  const tally = structuredClone(one.take());
  expect(tally.dnsQueries).toEqual([
    [{ type: "MX", outcome: "response", cached: "false" }, 3],
    [{ type: "A", outcome: "timeout", cached: "false" }, 1],
  ]);
  addTally(other, tally);
  addTally(other, one.take());
  expect(other.take()).toEqual(tally);
});
