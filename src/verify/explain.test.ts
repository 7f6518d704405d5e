import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { evidenceWith, testKeyEvidence } from "../testing/evidence.ts";
import { createMailNetworks } from "../testing/mail-network.ts";
import type { SmtpStubScript } from "../testing/smtp-stub.ts";
import { beginEvidence } from "./address-evidence.ts";
import { explain } from "./explain.ts";
import { SUB_STATUSES } from "./result.ts";

const networkOf = createMailNetworks();

const onlyAda = (address: string) => (address === "Ada@x.example" ? "250 2.1.5 Ok" : "550 5.1.1 User unknown");
const golden = (name: string): string => readFileSync(new URL(`./explained/${name}.txt`, import.meta.url), "utf8");

describe("reads as in explained/", () => {
  test("delivered", async () => {
    const network = networkOf({
      hosts: [
        { name: "dead.x.example", unconnectable: "timeout" },
        { name: "mx.x.example", script: { rcpt: onlyAda } },
      ],
    });
    expect(`${explain((await network.verify("Ada@X.example")).evidence)}\n`).toBe(golden("delivered"));
  });

  test("greylisted", async () => {
    let asked = 0;
    const rcpt: SmtpStubScript["rcpt"] = (address) =>
      asked++ < 2 ? "450 4.2.0 Greylisted, come back in 120 seconds" : onlyAda(address);
    const network = networkOf({ hosts: [{ name: "mx.x.example", script: { rcpt } }] });
    expect(`${explain((await network.verifyWithRetries("Ada@x.example")).evidence)}\n`).toBe(golden("greylisted"));
  });

  test("blocked", async () => {
    const banner = () => "554 5.7.1 Service unavailable; client blocked, see https://block.example/?ip=203.0.113.9";
    const network = networkOf({ hosts: [{ name: "mx.x.example", script: { banner } }] });
    network.zone["mx.x.example"] = { A: ["203.0.114.1", "10.0.0.1"] };
    expect(`${explain((await network.verify("info@x.example")).evidence)}\n`).toBe(golden("blocked"));
  });
});

test("the first line names the sub_status", async () => {
  for (const subStatus of SUB_STATUSES) {
    const evidence = await testKeyEvidence(`${subStatus}@any.example`);
    expect(explain(evidence).split("\n")[0]).toContain(`(${subStatus})`);
    expect(explain(evidence)).not.toMatch(/undefined|\[object/);
  }
});

test("evidence that is still being gathered says so", () => {
  expect(explain(beginEvidence("ada@x.example")).split("\n")[0]).toBe("ada@x.example: no verdict yet");
});

test("a suggestion, the suppression list and the blocklists are shown", () => {
  const address = { suggestion: "ada@gmail.com" };
  const dnsbl = { outcome: "listed" as const, listings: [{ listing: "some-list", subject: "x.example" }] };
  const text = explain(evidenceWith({ address, dnsbl, toxic: "x.example" }));
  for (const part of ["did you mean ada@gmail.com?", "x.example is on some-list", "suppressed (x.example)"])
    expect(text).toContain(part);
});

test("a DNS response shows the server that sent it, or that it was cached", async () => {
  const network = networkOf({ hosts: [{ name: "mx.x.example", script: { rcpt: onlyAda } }] });
  const { evidence } = await network.verify("Ada@x.example");
  const { domain } = evidence;
  const [first] = domain?.dns_queries ?? [];
  if (domain === null || first === undefined) throw new Error("no query");
  const shown = (differences: Partial<typeof first>) =>
    explain({ ...evidence, domain: { ...domain, dns_queries: [{ ...first, ...differences }] } });
  expect(shown({ from_cache: true, server: null })).toContain("[from the cache]");
  expect(shown({ from_cache: false, server: "192.0.2.53", elapsed_ms: 7 })).toContain("[192.0.2.53, 7 ms]");
  expect(shown({ from_cache: false, server: null, elapsed_ms: 0 })).toContain("[not sent, 0 ms]");
});

test("the egress, a cooldown, and the age of a cached reply are shown", async () => {
  const egresses = [{ name: "192.0.2.9" }] as const;
  const script: SmtpStubScript = { rcpt: onlyAda };
  const network = networkOf({ hosts: [{ name: "mx.x.example", script }], egresses: [...egresses] });
  await network.verify("Ada@x.example");
  await network.clock.advance(60_000);
  const text = explain((await network.verify("Ada@x.example")).evidence);
  expect(text).toContain("mx.x.example at 203.0.114.1, port 25, from 192.0.2.9");
  expect(text).toContain("and refuses a random recipient (probed 60 s before)");

  const dead = networkOf({ hosts: [{ name: "mx.x.example", unconnectable: "timeout" }] });
  for (let n = 0; n < 3; n++) await dead.verify();
  const { evidence, result } = await dead.verify();
  expect(explain(evidence)).toContain(
    "not probed: on cooldown since 2026-01-01T00:00:00.000Z because it kept timing out",
  );
  expect(result.sub_status).toBe("smtp_unreachable");
});

test("nothing a server says steers the terminal", async () => {
  const banner = () => "554 5.7.1 \u001b]0;owned\u0007 \u001b[2J \u202etxt";
  const { evidence } = await networkOf({ hosts: [{ name: "mx.x.example", script: { banner } }] }).verify();
  expect(explain(evidence)).not.toMatch(/[^\P{Cc}\n]|\u202e/u);
  expect(explain(evidence)).toContain("owned");
});

test("an accepted other recipient is named as the reason, and an address as MX as what it is", async () => {
  const rcpt = (address: string) => (address === "ada@x.example" ? "250 2.1.5 Ok" : "550 5.7.1 No such user!");
  const network = networkOf({ hosts: [{ name: "mx.x.example", script: { rcpt } }] });
  network.zone["x.example"] = {
    MX: [
      [10, "203.0.114.9"],
      [20, "mx.x.example"],
    ],
  };
  await network.verify("ada@x.example");
  await network.clock.advance(7_000);
  const explained = explain((await network.verify("bob@x.example")).evidence);
  expect(explained).toContain(
    "found: mailbox_not_found at mx.x.example, because it accepted another recipient of the domain from the same egress (7 s before)",
  );
  expect(explained).toContain(
    "203.0.114.9 is an IP address where MX requires a host name (RFC 1035 §3.3.9): not probed",
  );
});
