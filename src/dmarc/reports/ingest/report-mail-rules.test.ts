import { afterEach, describe, expect, test } from "bun:test";
import { createLog } from "../../../foundation/base/log.ts";
import type { KeyMode } from "../../../foundation/base/secrets.ts";
import { type Db, openDb } from "../../../foundation/db/open.ts";
import type { ReceivedMail } from "../../../foundation/net/smtp-receiver-rules.ts";
import { createTestClock } from "../../../testing/clock.ts";
import { madeDomain } from "../../../testing/dmarc-domain.ts";
import { DomainStore } from "../../records/domains/domain-store.ts";
import type { IncomingReport } from "./ingestion-store.ts";
import type { AuthenticationResults } from "../authentication/mail-authentication.ts";
import { ReportAuthorStore } from "../../records/domains/reporter-store.ts";
import {
  ReportMailRules,
  tokenIn,
  AUTHOR_DAY_BYTES_MAX,
  DOMAIN_DAY_BYTES_CEILING,
  DOMAIN_DAY_BYTES_MAX,
  AUTHENTICATED_AT_ONCE,
  AUTHENTICATED_BYTES_MAX,
  ReportQuota,
} from "./report-mail-rules.ts";

const HOST = "reports.example.net";
const ONE = "a".repeat(20);
const TWO = "b".repeat(20);

const opened: Db[] = [];
afterEach(() => {
  for (const db of opened.splice(0)) db.close();
});

const startHarness = (take: (incoming: IncomingReport) => Promise<string> = async () => "id") => {
  const database = openDb(":memory:");
  if (!database.ok) throw new Error(database.error.kind);
  const db = database.value;
  opened.push(db);
  const domains = new DomainStore(db);
  const clock = createTestClock();
  const taken: IncomingReport[] = [];
  const logged: string[] = [];
  const enrol = (token: string, mode: KeyMode = "live") =>
    db.transact((tx) =>
      domains.insert(
        tx,
        madeDomain({
          ...{ id: token, accountId: `account of ${token}`, mode, domain: `${token}.example`, token },
          status: "pending",
        }),
      ),
    );
  const disk = { isLow: false, asked: [] as number[] };
  const reserve = {
    isLow(bytes = 0) {
      disk.asked.push(bytes);
      return disk.isLow;
    },
  };
  const authors = new ReportAuthorStore(db);
  const judged: string[] = [];
  const dns = { answer: Promise.resolve() };
  const authenticate = async ({ mailFrom }: { readonly mailFrom: string | null }): Promise<AuthenticationResults> => {
    judged.push(mailFrom ?? "");
    await dns.answer;
    const [user, from = null] = mailFrom?.split("@") ?? [];
    const authenticity = user === "forged" ? "fail" : user === "unsure" ? "unknown" : "pass";
    return { authenticity, from, spf: null, dkim: [], dmarc: null, message: "", temporary: user === "unsure" };
  };
  const reception = new ReportMailRules(
    { clock, log: createLog("info", clock, (line) => logged.push(line)) },
    {
      ...{ domains, reserve, reportHost: HOST },
      quota: new ReportQuota(clock, authors, authenticate),
      queue: {
        async add(incoming) {
          const id = await take(incoming);
          taken.push(incoming);
          return id;
        },
      },
    },
  );
  return { db, domains, authors, judged, dns, enrol, reception, taken, logged, disk, clock };
};

const mailTo = (...recipients: readonly string[]): ReceivedMail => ({
  recipients,
  mailFrom: "noreply-dmarc@reporter.example",
  helo: "mx.reporter.example",
  client: "192.0.2.7",
  bytes: new TextEncoder().encode("Subject: Report\r\n\r\nx\r\n"),
  tls: true,
});

describe("space", () => {
  test("that is low refuses mail temporarily, and stores nothing", async () => {
    const { enrol, reception, taken, disk } = startHarness();
    enrol(ONE);
    disk.isLow = true;
    expect(reception.isFull()).toBe(true);
    const mail = mailTo(`${ONE}@${HOST}`);
    expect(await reception.acceptMail(mail)).toBe("full");
    expect(taken).toEqual([]);
    expect(disk.asked.at(-1)).toBe(mail.bytes.byteLength);
    disk.isLow = false;
    expect([reception.isFull(), await reception.acceptMail(mail)]).toEqual([false, "accepted"]);
  });

  test("is needed once for each domain that a mail is stored for", async () => {
    const { enrol, reception, disk } = startHarness();
    const tokens = [..."abcdefghijklmnopqrstuvwxyz"].map((letter) => letter.repeat(20));
    for (const token of tokens) enrol(token);
    const mail = mailTo(...tokens.map((token) => `${token}@${HOST}`));
    expect(await reception.acceptMail(mail)).toBe("accepted");
    expect(disk.asked.at(-1)).toBe(tokens.length * mail.bytes.byteLength);
  });

  test("is limited by domain and day", async () => {
    const { db, domains, enrol, reception, taken, logged, clock } = startHarness();
    const [one] = [enrol(ONE), enrol(TWO)];
    const use = (bytes: number) =>
      db.transact((tx) => domains.addUsage(tx, one.number, { day: Math.floor(clock.nowMs() / 86_400_000), bytes }));
    use(DOMAIN_DAY_BYTES_MAX - 1);
    expect(reception.judgeRecipient(`${ONE}@${HOST}`)).toBe("known");
    use(1);
    expect(reception.judgeRecipient(`${ONE}@${HOST}`)).toBe("full");
    expect(await reception.acceptMail(mailTo(`${TWO}@${HOST}`, `${ONE}@${HOST}`))).toBe("full");
    expect(taken).toEqual([]);
    expect(reception.judgeRecipient(`${TWO}@${HOST}`)).toBe("known");
    expect(logged).toHaveLength(1);
    await clock.advance(86_400_000);
    expect(reception.judgeRecipient(`${ONE}@${HOST}`)).toBe("known");
  });
});

describe("a domain whose daily quota is used up by a flood", () => {
  const KNOWN = "noreply@mail.receiver.example";
  const ADDRESS = `${ONE}@${HOST}`;
  const from = (mailFrom: string, bytes = 100): ReceivedMail => ({
    ...mailTo(ADDRESS),
    mailFrom,
    bytes: new Uint8Array(bytes),
  });

  const startFlooded = async () => {
    const harness = startHarness();
    const { db, domains, authors, clock, enrol } = harness;
    const { number } = enrol(ONE);
    const day = () => Math.floor(clock.nowMs() / 86_400_000);
    const use = (bytes: number) => db.transact((tx) => domains.addUsage(tx, number, { day: day(), bytes }));
    const send = (author: string, bytes: number) =>
      db.transact((tx) => authors.add(tx, number, author, { day: day(), bytes }));
    send("receiver.example", 10);
    await clock.advance(86_400_000);
    use(DOMAIN_DAY_BYTES_MAX);
    return { ...harness, use, send };
  };

  test("still accepts mail of known reporters, and of nobody else", async () => {
    const { reception, taken, send, judged } = await startFlooded();
    send("attacker.example", 10);
    expect(reception.judgeRecipient(ADDRESS)).toBe("known");
    for (const [sender, outcome] of [
      ["a@attacker.example", "full"],
      ["a@stranger.example", "full"],
      ["forged@receiver.example", "full"],
      ["unsure@receiver.example", "later"],
      [KNOWN, "accepted"],
    ] as const) {
      expect([sender, await reception.acceptMail(from(sender))]).toEqual([sender, outcome]);
    }
    expect(taken.map(({ mailFrom }) => mailFrom)).toEqual([KNOWN]);
    expect(judged).toHaveLength(5);
  });

  test("accepts a limited amount from each of them, and from all", async () => {
    const { reception, send, use, clock } = await startFlooded();
    send("receiver.example", AUTHOR_DAY_BYTES_MAX - 1);
    expect(await reception.acceptMail(from(KNOWN))).toBe("accepted");
    send("receiver.example", 1);
    expect(await reception.acceptMail(from(KNOWN))).toBe("full");
    await clock.advance(86_400_000);
    use(DOMAIN_DAY_BYTES_MAX);
    expect(await reception.acceptMail(from(KNOWN))).toBe("accepted");
    use(DOMAIN_DAY_BYTES_CEILING);
    expect([reception.judgeRecipient(ADDRESS), await reception.acceptMail(from(KNOWN))]).toEqual(["full", "full"]);
  });

  test("authenticates no large mail, and few at a time", async () => {
    const { reception, dns, judged } = await startFlooded();
    expect(await reception.acceptMail(from(KNOWN, AUTHENTICATED_BYTES_MAX + 1))).toBe("full");
    expect(judged).toEqual([]);
    const answer = Promise.withResolvers<void>();
    dns.answer = answer.promise;
    const taking = Array.from({ length: AUTHENTICATED_AT_ONCE + 1 }, () => reception.acceptMail(from(KNOWN)));
    expect(await taking.at(-1)).toBe("later");
    answer.resolve();
    expect(await Promise.all(taking.slice(0, AUTHENTICATED_AT_ONCE))).toEqual(
      Array(AUTHENTICATED_AT_ONCE).fill("accepted"),
    );
    expect(await reception.acceptMail(from(KNOWN))).toBe("accepted");
  });
});

describe("the token in a recipient", () => {
  test.each([
    [`${ONE}@${HOST}`, ONE],
    [`${ONE.toUpperCase()}@Reports.EXAMPLE.net`, ONE],
    [`${ONE}+anything@${HOST}`, ONE],
    [`${ONE}+any+thing@${HOST}`, ONE],
    [`"${ONE}"@${HOST}`, ONE],
    [`"${ONE}+x y"@${HOST}`, ONE],
    [`${ONE}@${HOST}.`, ONE],
    [`${ONE}@${HOST}..`, null],
    [`${ONE}@other.example.net`, null],
    [`${ONE}@sub.${HOST}`, null],
    [`${ONE}@[127.0.0.1]`, null],
    [`x${ONE}@${HOST}`, null],
    [`+${ONE}@${HOST}`, null],
    [ONE, null],
    [`postmaster@${HOST}`, null],
    ["postmaster", null],
    ["", null],
    [`@${HOST}`, null],
  ])("of %p is %p", (address, token) => {
    expect(tokenIn(address, HOST)).toBe(token);
  });

  test("is found at an internationalized host", () => {
    expect(tokenIn(`${ONE}@berichte.bücher.example`, "berichte.xn--bcher-kva.example")).toBe(ONE);
  });
});

describe("a recipient", () => {
  test("is known while its domain is enrolled", () => {
    const { db, domains, enrol, reception } = startHarness();
    expect(reception.judgeRecipient(`${ONE}@${HOST}`)).toBe("unknown");
    const { number } = enrol(ONE);
    expect(reception.judgeRecipient(`${ONE}@${HOST}`)).toBe("known");
    expect(reception.judgeRecipient(`${TWO}@${HOST}`)).toBe("unknown");
    db.transact((tx) => domains.markDeleted(tx, number, 1));
    expect(reception.judgeRecipient(`${ONE}@${HOST}`)).toBe("unknown");
  });

  test("of a test key is unknown", () => {
    const { enrol, reception } = startHarness();
    enrol(ONE, "test");
    expect(reception.judgeRecipient(`${ONE}@${HOST}`)).toBe("unknown");
  });

  test("is temporarily refused, not unknown, when the database fails", () => {
    const { db, enrol, reception, logged } = startHarness();
    enrol(ONE);
    db.sqlite.run("DROP TABLE dmarc_domains");
    expect(reception.judgeRecipient(`${ONE}@${HOST}`)).toBe("later");
    expect(logged).toHaveLength(1);
  });
});

describe("a mail", () => {
  test("is stored with its envelope, for the domain of its recipient", async () => {
    const { enrol, reception, taken } = startHarness();
    const { number } = enrol(ONE);
    const mail = mailTo(`${ONE}@${HOST}`);
    expect(await reception.acceptMail(mail)).toBe("accepted");
    expect(taken).toEqual([
      {
        accountId: `account of ${ONE}`,
        mode: "live",
        domain: number,
        via: "smtp",
        name: null,
        bytes: mail.bytes,
        client: "192.0.2.7",
        helo: "mx.reporter.example",
        mailFrom: "noreply-dmarc@reporter.example",
      },
    ]);
  });

  test("to several domains is stored once for each", async () => {
    const { enrol, reception, taken } = startHarness();
    const numbers = [enrol(ONE).number, enrol(TWO).number];
    expect(await reception.acceptMail(mailTo(`${ONE}@${HOST}`, `${TWO}@${HOST}`, `${ONE}+again@${HOST}`))).toBe(
      "accepted",
    );
    expect(taken.map(({ domain }) => domain)).toEqual(numbers);
  });

  test("is not accepted before it is stored for every domain", async () => {
    const second = Promise.withResolvers<string>();
    const { enrol, reception } = startHarness(({ accountId }) =>
      accountId.endsWith(TWO) ? second.promise : Promise.resolve("id"),
    );
    enrol(ONE);
    enrol(TWO);
    let isTaken = false;
    const taking = reception.acceptMail(mailTo(`${ONE}@${HOST}`, `${TWO}@${HOST}`)).then((outcome) => {
      isTaken = true;
      return outcome;
    });
    await new Promise<void>((resolve) => setImmediate(resolve));
    expect(isTaken).toBe(false);
    second.resolve("id");
    expect(await taking).toBe("accepted");
  });

  test("that could not be stored for one of its domains is temporarily refused", async () => {
    const { enrol, reception, logged } = startHarness(({ accountId }) =>
      accountId.endsWith(TWO) ? Promise.reject(new Error("database or disk is full")) : Promise.resolve("id"),
    );
    enrol(ONE);
    enrol(TWO);
    expect(await reception.acceptMail(mailTo(`${ONE}@${HOST}`, `${TWO}@${HOST}`))).toBe("later");
    expect(logged.join("\n")).toContain("database or disk is full");
  });

  test("whose domains were all deleted meanwhile is refused; if some remain, it is stored for them", async () => {
    const { db, domains, enrol, reception, taken } = startHarness();
    const { number } = enrol(ONE);
    enrol(TWO);
    db.transact((tx) => domains.markDeleted(tx, number, 1));
    expect(await reception.acceptMail(mailTo(`${ONE}@${HOST}`))).toBe("refused");
    expect(await reception.acceptMail(mailTo(`${ONE}@${HOST}`, `${TWO}@${HOST}`))).toBe("accepted");
    expect(taken).toHaveLength(1);
  });
});
