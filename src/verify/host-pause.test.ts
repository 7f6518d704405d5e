import { expect, test } from "bun:test";
import { settle } from "../testing/clock.ts";
import { createMailNetworks } from "../testing/mail-network.ts";

const networkOf = createMailNetworks();

const BANNED = "550 5.7.1 Too many unknown recipients from your address, blocked";
const names = Array.from({ length: 30 }, (_, n) => `n${n}`);

test("a host that bans us for unknown recipients gets no further recipient until the first retry is due", async () => {
  let isBanned: boolean = true;
  const rcpt = () => (isBanned ? BANNED : "550 5.1.1 User unknown");
  const network = networkOf({ hosts: [{ name: "mx.x.example", script: { rcpt } }], retryWaitsS: [60] });
  const rcpts = () =>
    network.stub("mx.x.example").sessions.flatMap(({ lines }) => lines.filter((line) => line.startsWith("RCPT")))
      .length;
  const results = names.map((name) => network.verify(`${name}@x.example`));
  const first = await Promise.race(results);
  expect(first.result.sub_status).toBe("rate_limited");
  // Sessions that were under way when the ban was read have been sent: two connections a time, and two recipients each.
  await network.clock.advance(59_000);
  const sent = rcpts();
  expect(sent).toBeLessThanOrEqual(20);
  isBanned = false;
  await network.clock.advance(1_000);
  for (let turn = 0; turn < 500 && network.pool.waiting() > 0; turn++) await settle();
  const rest = (await Promise.all(results)).map(({ result }) => result.sub_status);
  expect(rest.filter((subStatus) => subStatus === "mailbox_not_found").length).toBeGreaterThanOrEqual(20);
  expect(new Set(rest)).toEqual(new Set(["rate_limited", "mailbox_not_found"]));
});
