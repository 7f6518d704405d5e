import { describe, expect, test } from "bun:test";
import { createMailNetworks, type MailNetwork } from "../testing/mail-network.ts";
import { HANG_UP, type SmtpStubScript } from "../testing/smtp-stub.ts";

const networkOf = createMailNetworks();

const UNKNOWN = "550 5.1.1 User unknown";
const OK = "250 2.1.5 Ok";
const KEEP_MS = 15 * 60_000;
const known = /^(ada|bob|eve)@/;
const onlyKnown = (address: string): string => (known.test(address) ? OK : UNKNOWN);

const hostWith = (rcpt: SmtpStubScript["rcpt"] & {}, name = "mx.x.example") => ({ name, script: { rcpt } });
const rcptsAt = (network: MailNetwork, name = "mx.x.example"): string[] =>
  network.stub(name).sessions.flatMap(({ lines }) => lines.filter((line) => line.startsWith("RCPT")));
const findingOf = ({ evidence }: Awaited<ReturnType<MailNetwork["verify"]>>) => evidence.attempts.at(-1)?.finding;

describe("the second address of a domain", () => {
  const rows = [
    ["knows its recipients", onlyKnown, "no", "mailbox_exists"],
    ["accepts everybody", () => OK, "yes", "catch_all"],
  ] as const;
  for (const [name, rcpt, state, subStatus] of rows)
    test(`whose host ${name} costs one RCPT, and the evidence says how old the other answer is`, async () => {
      const network = networkOf({ hosts: [hostWith(rcpt)] });
      const first = await network.verify("ada@x.example");
      expect(findingOf(first)).toMatchObject({ catch_all: state, catch_all_age_s: null });
      await network.clock.advance(90_400);
      const second = await network.verify("bob@x.example");
      expect(second.result.sub_status).toBe(subStatus);
      expect(second.result.confidence).toBe(first.result.confidence);
      expect(findingOf(second)).toMatchObject({ catch_all: state, catch_all_age_s: 90 });
      expect(rcptsAt(network)).toHaveLength(3);
      expect(rcptsAt(network)[2]).toBe("RCPT TO:<bob@x.example>");
    });

  test("is probed with a random one again when the cache entry has expired", async () => {
    const network = networkOf({ hosts: [hostWith(onlyKnown)] });
    await network.verify("ada@x.example");
    await network.clock.advance(KEEP_MS);
    expect(findingOf(await network.verify("bob@x.example"))).toMatchObject({ catch_all: "no", catch_all_age_s: null });
    expect(rcptsAt(network)).toHaveLength(4);
  });

  test("that the host does not know is unknown, whatever is cached", async () => {
    for (const script of [onlyKnown, (address: string) => (address.startsWith("nobody@") ? UNKNOWN : OK)]) {
      const network = networkOf({ hosts: [hostWith(script)] });
      await network.verify("ada@x.example");
      const second = await network.verify("nobody@x.example");
      expect(second.result.sub_status).toBe("mailbox_not_found");
      expect(findingOf(second)).toMatchObject({ catch_all: "skipped", catch_all_age_s: null });
    }
  });

  test("in another spelling of the domain is of the same domain", async () => {
    const network = networkOf({ hosts: [hostWith(onlyKnown)] });
    await network.verify("ada@x.example");
    await network.verify("bob@X.Example");
    expect(rcptsAt(network)).toHaveLength(3);
  });

  test("refused without a reason is compared with the random one, probed alone", async () => {
    for (const [randomReply, subStatus] of [
      ["550 Rejected", "smtp_blocked"],
      [OK, "mailbox_not_found"],
    ] as const) {
      let isFirst: boolean = true;
      const rcpt = (address: string) => {
        if (address.startsWith("ada@")) return OK;
        if (address.startsWith("mystery@")) return "550 Rejected";
        return isFirst ? UNKNOWN : randomReply;
      };
      const network = networkOf({ hosts: [hostWith(rcpt)] });
      await network.verify("ada@x.example");
      isFirst = false;
      const second = await network.verify("mystery@x.example");
      expect(second.result.sub_status).toBe(subStatus);
      const sessions = second.evidence.attempts[0]?.sessions ?? [];
      expect(
        sessions.map(({ replies }) => replies.filter(({ stage }) => stage === "rcpt").map(({ about }) => about)),
      ).toEqual([["submitted"], ["random"]]);
    }
  });
});

describe("only certain replies are cached", () => {
  const notSaid: ReadonlyArray<readonly [string, SmtpStubScript["rcpt"] & {}]> = [
    ["a random one that is greylisted", (address) => (known.test(address) ? OK : "450 4.2.0 Greylisted")],
    ["a random one that is blocked", (address) => (known.test(address) ? OK : "554 5.7.1 Blocked using a blocklist")],
    ["a random one too many", (address) => (known.test(address) ? OK : "452 4.5.3 Too many recipients")],
    ["a random one unknown for the time being", (address) => (known.test(address) ? OK : "450 4.1.1 User unknown")],
    ["a connection that ends before it", (address) => (known.test(address) ? OK : HANG_UP)],
    ["a submitted one that is greylisted", () => "450 4.2.0 Greylisted"],
  ];
  for (const [name, rcpt] of notSaid)
    test(`not after ${name}`, async () => {
      const network = networkOf({ hosts: [hostWith(rcpt)] });
      await network.verify("ada@x.example");
      const before = rcptsAt(network).length;
      await network.verify("bob@x.example");
      const randoms = rcptsAt(network)
        .slice(before)
        .filter((line) => !line.includes("<bob@"));
      expect(randoms.length).toBeGreaterThan(0);
    });
});

test("one host's answer is not another's", async () => {
  const hosts = [hostWith(onlyKnown, "mx1.x.example"), { ...hostWith(() => OK, "mx2.x.example"), preference: 20 }];
  const network = networkOf({ hosts });
  await network.verify("ada@x.example");
  network.zone["x.example"] = { MX: [[10, "mx2.x.example"]] };
  const second = await network.verify("bob@x.example");
  expect([second.result.sub_status, findingOf(second)?.catch_all_age_s]).toEqual(["catch_all", null]);
  expect(rcptsAt(network, "mx2.x.example")).toHaveLength(2);
});

test("one domain's answer is not another's at the same host", async () => {
  const rcpt = (address: string) => (address.endsWith("@y.example") ? OK : onlyKnown(address));
  const network = networkOf({ hosts: [hostWith(rcpt)], zone: { "y.example": { MX: [[10, "mx.x.example"]] } } });
  expect((await network.verify("ada@x.example")).result.sub_status).toBe("mailbox_exists");
  expect((await network.verify("ada@y.example")).result.sub_status).toBe("catch_all");
});
