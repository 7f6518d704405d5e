import { describe, expect, test } from "bun:test";
import { createTestClock } from "../testing/clock.ts";
import { createMailNetworks, type MailNetwork, type NetworkEgress } from "../testing/mail-network.ts";
import { HANG_UP, type StubAnswer, type SmtpStubScript } from "../testing/smtp-stub.ts";
import { explain } from "./explain.ts";
import { RecentAcceptances } from "./findings.ts";
import type { ConcludedVerification } from "./verdict.ts";

const networkOf = createMailNetworks();

const OK = "250 2.1.5 Ok";
const NO_SUCH_USER = "550 5.7.1 No such user!";
const STEPWISE = ["8BITMIME"];
const KEEP_MS = 5 * 60_000;

/** A host that accepts these local parts, and says `line` to all others. */
const accepting = (names: readonly string[], line = NO_SUCH_USER): SmtpStubScript => ({
  rcpt: (address) => (names.includes(address.split("@")[0] ?? "") ? OK : line),
});
const postmasterSaying = (answer: StubAnswer): SmtpStubScript => ({
  rcpt: (address) => (address.startsWith("postmaster@") ? answer : NO_SUCH_USER),
});
const networkWith = (script: SmtpStubScript, egresses?: readonly [NetworkEgress, ...NetworkEgress[]]): MailNetwork =>
  networkOf({ hosts: [{ name: "mx.x.example", script }], ...(egresses ? { egresses } : {}) });
const findingOf = ({ evidence }: ConcludedVerification) => evidence.attempts.at(-1)?.finding;
const countPostmaster = (network: MailNetwork): number =>
  network
    .stub("mx.x.example")
    .sessions.flatMap(({ lines }) => lines)
    .filter((line) => line === "RCPT TO:<postmaster@x.example>").length;

describe("a refusal with a policy code in the words of an unknown user", () => {
  test.each([
    NO_SUCH_USER,
    "550 5.7.1 <bob@x.example>: Recipient address rejected: user bob does not exist",
    "554 5.7.0 User unknown",
    "550 5.7.1 Benutzer unbekannt",
    "550 5.7.1 Пользователь не найден",
  ])("is about the mailbox where postmaster is accepted: %p", async (line) => {
    for (const ehlo of [undefined, STEPWISE]) {
      const network = networkWith({ ...accepting(["postmaster"], line), ...(ehlo ? { ehlo } : {}) });
      const concluded = await network.verify("bob@x.example");
      expect(concluded.result).toMatchObject({ verdict: "undeliverable", sub_status: "mailbox_not_found" });
      expect(findingOf(concluded)?.positive_control).toEqual({ recipient: "postmaster", age_s: 0 });
      expect(concluded.evidence.conclusion?.because).toContain("accepts postmaster");
      expect(explain(concluded.evidence)).toContain("RCPT for postmaster: 250 2.1.5 means accepted");
    }
  });

  test("is about the mailbox where another recipient was accepted lately; postmaster is not probed", async () => {
    const network = networkWith(accepting(["ada"]));
    await network.verify("ada@x.example");
    await network.clock.advance(90_000);
    const concluded = await network.verify("bob@x.example");
    expect(concluded.result.sub_status).toBe("mailbox_not_found");
    expect(findingOf(concluded)?.positive_control).toEqual({ recipient: "another", age_s: 90 });
    expect(countPostmaster(network)).toBe(0);
    expect(JSON.stringify(concluded.evidence)).not.toContain("ada@");
  });

  test("needs postmaster once for many addresses", async () => {
    const network = networkWith(accepting(["postmaster"]));
    for (const name of ["bob", "eve", "kim"])
      expect((await network.verify(`${name}@x.example`)).result.sub_status).toBe("mailbox_not_found");
    expect(countPostmaster(network)).toBe(1);
    await network.clock.advance(KEEP_MS);
    await network.verify("bob@x.example");
    expect(countPostmaster(network)).toBe(2);
  });

  test.each<readonly [string, SmtpStubScript]>([
    ["postmaster is refused alike", accepting([])],
    ["postmaster is refused as a policy", postmasterSaying("550 5.7.1 Access denied by policy")],
    ["postmaster is greylisted", postmasterSaying("450 4.2.0 Greylisted")],
    ["the connection ends at postmaster", postmasterSaying(HANG_UP)],
    ["postmaster is unknown", postmasterSaying("550 5.1.1 User unknown")],
  ])("stays open where %s", async (_name, script) => {
    const network = networkWith(script);
    const concluded = await network.verify("bob@x.example");
    expect(concluded.result).toMatchObject({ verdict: "risky", sub_status: "smtp_blocked" });
    expect(findingOf(concluded)?.positive_control).toBeNull();
    expect(concluded.evidence.conclusion?.because).toContain("does not say whether the mailbox exists");
    expect(countPostmaster(network)).toBeGreaterThan(0);
  });

  test("is settled by an accepted random recipient, without postmaster", async () => {
    const network = networkWith({ rcpt: (address) => (address.startsWith("bob@") ? NO_SUCH_USER : OK) });
    const concluded = await network.verify("bob@x.example");
    expect(concluded.result.sub_status).toBe("mailbox_not_found");
    expect(findingOf(concluded)).toMatchObject({ catch_all: "yes", positive_control: null });
    expect(countPostmaster(network)).toBe(0);
  });

  test("of postmaster itself stays open", async () => {
    const network = networkWith(accepting([]));
    expect((await network.verify("postmaster@x.example")).result.verdict).toBe("risky");
    expect(countPostmaster(network)).toBe(1);
  });

  test.each([
    "550 5.7.1 No such user, your IP is blocked",
    "550 5.7.1 User unknown: spam",
    "550 5.7.1 User unknown, rejected by policy",
    "550 5.7.1 User unknown, access denied",
    "550 5.7.1 User unknown, poor reputation",
    "550 5.7.1 Unable to verify recipient",
    "550 5.7.1 account disabled",
    "550 sorry",
  ])("%p is not settled by an accepted postmaster, which is not probed for it", async (line) => {
    const network = networkWith(accepting(["postmaster"], line));
    expect((await network.verify("bob@x.example")).result.verdict).toBe("risky");
    expect(countPostmaster(network)).toBe(0);
  });

  test("is open again once the host has refused us, until postmaster is accepted", async () => {
    let isBlocked: boolean = false;
    const network = networkWith({
      rcpt(address) {
        if (address.startsWith("eve@")) return "554 5.7.1 Client host blocked using a blocklist";
        return address.startsWith("ada@") && !isBlocked ? OK : NO_SUCH_USER;
      },
    });
    await network.verify("ada@x.example");
    isBlocked = true;
    await network.verify("eve@x.example");
    await network.clock.advance(1_000);
    expect((await network.verify("bob@x.example")).result.verdict).toBe("risky");
    expect(countPostmaster(network)).toBe(1);
  });

  test("from one egress is not settled by what another may do", async () => {
    const one: NetworkEgress = { name: "one", from: "127.0.0.1" };
    const two: NetworkEgress = { name: "two", from: "127.0.0.2" };
    const network = networkWith(
      {
        rcpt: (address, _nth, { remoteAddress }) =>
          address.startsWith("ada@") && remoteAddress === "127.0.0.1" ? OK : NO_SUCH_USER,
      },
      [one, two],
    );
    const results = [];
    for (const name of ["ada", "ada", "bob", "bob"]) results.push(await network.verify(`${name}@x.example`));
    for (const concluded of results) {
      const egress = concluded.evidence.attempts[0]?.sessions[0]?.egress;
      if (egress === "two") expect(concluded.result.verdict).toBe("risky");
    }
    expect(results.some(({ evidence }) => evidence.attempts[0]?.sessions[0]?.egress === "two")).toBe(true);
  });
});

describe("recent acceptances", () => {
  const place = { domain: "x.example", host: "mx.x.example", egress: "direct" };

  test("count for other mailboxes of the same domain, host and egress only, for a while", async () => {
    const clock = createTestClock();
    const acceptances = new RecentAcceptances(clock);
    acceptances.noteAccepted(place, "ada@x.example");
    expect(acceptances.find(place, "ada@x.example")).toBeNull();
    expect(acceptances.find(place, "bob@x.example")).toEqual({ recipient: "another", age_s: 0 });
    for (const other of [{ domain: "y.example" }, { host: "mx2.x.example" }, { egress: "two" }])
      expect(acceptances.find({ ...place, ...other }, "bob@x.example")).toBeNull();
    await clock.advance(KEEP_MS - 1);
    expect(acceptances.find(place, "bob@x.example")?.age_s).toBe(300);
    await clock.advance(1);
    expect(acceptances.find(place, "bob@x.example")).toBeNull();
  });

  test.each(["an acceptance", "a refusal", "a search"] as const)(
    "no longer count and are gone after five minutes, with %s",
    async (use) => {
      const clock = createTestClock();
      const acceptances = new RecentAcceptances(clock);
      acceptances.noteAccepted(place, "ada@x.example");
      acceptances.noteAccepted({ ...place, domain: "y.example" }, "ada@y.example");
      acceptances.noteRefused({ host: "mx.refusing.example", egress: "direct" });
      await clock.advance(1);
      // Noted anew, it is the youngest.
      acceptances.noteAccepted(place, "bob@x.example");
      await clock.advance(KEEP_MS - 1);
      if (use === "an acceptance") acceptances.noteAccepted({ ...place, domain: "z.example" }, "ada@z.example");
      if (use === "a refusal") acceptances.noteRefused({ host: "mx.z.example", egress: "direct" });
      if (use === "a search") expect(acceptances.find(place, "carol@x.example")?.age_s).toBe(300);
      expect(acceptances.size).toBe(use === "a search" ? 1 : 2);
    },
  );

  test("are bounded", () => {
    const acceptances = new RecentAcceptances(createTestClock());
    for (let n = 0; n < 20_100; n++) acceptances.noteAccepted({ ...place, domain: `${n}.example` }, "ada");
    expect(acceptances.size).toBe(20_000);
    expect(acceptances.find({ ...place, domain: "0.example" }, "bob")).toBeNull();
    expect(acceptances.find({ ...place, domain: "20099.example" }, "bob")).not.toBeNull();
  });
});
