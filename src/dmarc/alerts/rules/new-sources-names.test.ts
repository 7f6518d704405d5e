import { describe, expect, test } from "bun:test";
import { createDmarcAlertHarness, enrolSettled, expectDocumented } from "../../../testing/dmarc-alert-harness.ts";

const newHarness = createDmarcAlertHarness();
const HOUR_MS = 60 * 60_000;
const MANY = { messages: 270, aligned: 270 };
/** A stored source that passes SPF for a name of the domain. */
const passing = (ip: string) => `${ip} -/- promo.example.com -`;
const signing = (ip: string) => `${ip} example.com/mail - -`;
const STRANGER = "203.0.113.7";

const settled = () => enrolSettled(newHarness());

describe("a new sender of aligned mail", () => {
  test("is alerted when its reverse name is found after hours", async () => {
    const { harness, number } = await settled();
    harness.report(number, harness.today, passing(STRANGER), MANY);
    await harness.job.run();
    await harness.clock.advance(3.6 * HOUR_MS);
    await harness.job.run();
    expect([harness.raised(), harness.find(number).isUnreviewed]).toEqual([[], true]);
    harness.reverse(STRANGER, "vps17.bulk-vps.example");
    await harness.job.run();
    await harness.job.run();
    expect(harness.raised()).toEqual(["new_source org:bulk-vps.example"]);
  });

  test("is alerted once, by its network, when its reverse name is never found, and again under the name", async () => {
    const { harness, number } = await settled();
    harness.report(number, harness.today, passing(STRANGER), MANY);
    for (let hour = 0; hour < 60; hour += 6) {
      await harness.job.run();
      await harness.clock.advance(6 * HOUR_MS);
      harness.report(number, harness.today, passing(STRANGER), MANY);
    }
    expect(harness.raised()).toEqual(["new_source own 203.0.113.0/24"]);
    expect(harness.events()[0]?.data).toMatchObject({
      sources: [{ key: "own", name: "203.0.113.0/24 (authenticates as example.com, reverse name not known yet)" }],
    });
    expectDocumented(harness);
    harness.reverse(STRANGER, "vps17.bulk-vps.example");
    harness.arrive(number);
    await harness.job.run();
    expect(harness.raised().slice(1)).toEqual(["new_source org:bulk-vps.example"]);
  });

  test("is alerted by its network when it has no reverse name, or one that providers give to all", async () => {
    for (const nameOf of [() => null, (ip: string) => `static-${ip.replaceAll(".", "-")}.isp.example`]) {
      const { harness, number } = await settled();
      harness.report(number, harness.today, passing(STRANGER), MANY);
      harness.reverse(STRANGER, nameOf(STRANGER));
      await harness.job.run();
      harness.report(number, harness.today, passing("203.0.113.8"), MANY);
      harness.reverse("203.0.113.8", nameOf("203.0.113.8"));
      await harness.job.run();
      expect(harness.raised()).toEqual(["new_source own 203.0.113.0/24"]);
      expect(harness.find(number).isUnreviewed).toBe(false);
    }
  });

  test("is none when it is a server of the domain", async () => {
    const { harness, number } = await settled();
    const named = "203.0.113.20";
    harness.report(number, harness.today, passing(named), MANY);
    await harness.job.run();
    harness.reverse(named, "mx9.example.com");
    // In the network of a server that was there before.
    harness.report(number, harness.today, passing("192.0.2.77"), MANY);
    harness.reverse("192.0.2.77", null);
    await harness.job.run();
    expect([harness.raised(), harness.find(number).isUnreviewed]).toEqual([[], false]);
  });

  test("is none where servers of the domain without names come and go in the same cloud", async () => {
    const { harness, number } = await settled();
    const inCloud = (ip: string) => {
      harness.reverse(ip, `ec2-${ip.replaceAll(".", "-")}.compute-1.amazonaws.com`);
      harness.db.sqlite.run("UPDATE dmarc_reverse_names SET asn = 16509 WHERE ip = ?", [ip]);
    };
    inCloud("198.51.100.5");
    for (let day = harness.today - 13; day <= harness.today - 9; day++)
      harness.report(number, day, passing("198.51.100.5"), MANY);
    await harness.job.run();
    expect(harness.raised()).toEqual([]);
    inCloud(STRANGER);
    harness.report(number, harness.today, passing(STRANGER), MANY);
    await harness.job.run();
    expect(harness.raised()).toEqual([]);
  });

  test("is none when only its signature is the domain's, and it sends little: mail is forwarded", async () => {
    const { harness, number } = await settled();
    harness.reverse(STRANGER, null);
    harness.report(number, harness.today, signing(STRANGER), { messages: 9, aligned: 9 });
    await harness.job.run();
    expect(harness.raised()).toEqual([]);
    harness.report(number, harness.today, signing(STRANGER), { messages: 2_000, aligned: 2_000 });
    await harness.job.run();
    expect(harness.raised()).toEqual(["new_source own 203.0.113.0/24"]);
  });

  test("is none of a test domain, whose addresses are not looked up", async () => {
    const harness = newHarness();
    const { number } = await enrolSettled(harness, { mode: "test" });
    harness.report(number, harness.today, passing(STRANGER), MANY);
    await harness.job.run();
    expect(harness.raised()).toEqual([]);
  });
});
