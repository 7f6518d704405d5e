import { systemClock } from "../../src/foundation/base/clock.ts";
import { createLog } from "../../src/foundation/base/log.ts";
import { systemRandom } from "../../src/foundation/base/secrets.ts";
import { createDirectConnector } from "../../src/foundation/net/connector.ts";
import { Service } from "../../src/service/compose.ts";
import { createMailThreads } from "../../src/service/mail-thread.ts";
import { systemPlatform } from "../../src/service/platform.ts";
import { createZoneResolver } from "../../src/testing/dns-zone.ts";
import { startSmtpStub } from "../../src/testing/smtp-stub.ts";
import { EngineSlice } from "../../src/verify/open.ts";
import { inTurns } from "../harness/world.ts";
import { type CpuTimes, cpuMarks, startCpuMeter } from "./cpu.ts";
import { type Mark, median } from "./marks.ts";
import { mailDomain, startNames, startSink } from "./servers.ts";
import { type Stage, configOf, newDataDir, openData } from "./stage.ts";

const PATIENCE_MS = 120_000;

/** The commands to send, by the number of replies received: EHLO after the banner, then the group, then QUIT. */
const stepsFor = (n: number) => [
  { replies: 1, say: "EHLO loop.bench.example\r\n" },
  {
    replies: 2,
    say: `MAIL FROM:<>\r\nRCPT TO:<user${n}@loop.test>\r\nRCPT TO:<random${n}@loop.test>\r\nRSET\r\n`,
  },
  { replies: 6, say: "QUIT\r\n" },
];
/** With the last one, of QUIT. */
const REPLIES = 7;

/** Counts the lines of a chunk that end a reply: three digits and a space. Replies of one line never span chunks here. */
const repliesIn = (text: string): number => text.split("\r\n").filter((line) => /^\d{3} /.test(line)).length;

/** One dialogue as bare as can be, from the banner to the reply to QUIT; MAIL, two RCPT and RSET are one write. */
const talk = (port: number, n: number): Promise<void> => {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const steps = stepsFor(n);
  let heard = 0;
  let step = 0;
  Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      data(socket, chunk) {
        heard += repliesIn(chunk.toString("latin1"));
        const next = steps[step];
        if (next !== undefined && heard >= next.replies) {
          step++;
          socket.write(next.say);
        } else if (heard >= REPLIES) {
          resolve();
          socket.end();
        }
      },
      close: () => reject(new Error("the sink closed early")),
    },
  }).catch(reject);
  return promise;
};

/** Runs `count` sessions of a bare `Bun.connect` loop, `atOnce` at a time; rejects when they take absurdly long. */
const bareDialogues = async (port: number, count: number, atOnce: number): Promise<void> => {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(() => late.reject(new Error("the bare loop did not end")), PATIENCE_MS);
  try {
    await Promise.race([inTurns(Array(count).keys(), atOnce, (n) => talk(port, n)), late.promise]);
  } finally {
    clearTimeout(timer);
  }
};

/** What threads run. */
const MAIN = new URL("../../src/main.ts", import.meta.url).pathname;
const ROUNDS = 5;
const CHECKS = 3_000;
const AT_ONCE = 100;
/** Until the compiler of the runtime has seen the code: up to 9,000 checks it works beside each of them. */
const WARM_UP = 12_000;
/** Addresses of one domain: as in the list of a small team, and where connections are to be shared. */
const LONE_PER_DOMAIN = 10;
const ADDRESSES_PER_DOMAIN = 100;
/** The submitted and the random recipient: then the connection has served, and the next check opens its own. */
const RCPT_OF_ONE_CHECK = 2;
const RCPT_SHARED = 50;
const WAIT_MS = 20_000;
const LONE_DOMAINS = Math.ceil((WARM_UP + ROUNDS * CHECKS) / LONE_PER_DOMAIN);
const SHARED_DOMAINS = Math.ceil((WARM_UP + ROUNDS * CHECKS) / ADDRESSES_PER_DOMAIN);

const loneAddress = (n: number): string => `user${n}@lone${Math.floor(n / LONE_PER_DOMAIN)}.test`;
const sharedAddress = (n: number): string => `user${n}@shared${Math.floor(n / ADDRESSES_PER_DOMAIN)}.test`;

const zone = (): string[] => [
  ...Array.from({ length: LONE_DOMAINS }, (_, n) => mailDomain(`lone${n}.test`, "127.0.0.1")).flat(),
  ...Array.from({ length: SHARED_DOMAINS }, (_, n) => mailDomain(`shared${n}.test`, "127.0.0.1")).flat(),
];

interface Setup {
  readonly dnsServers: string;
  readonly smtpPort: number;
  readonly rcptMax: number;
  readonly workers: 0 | 1;
}

/** A service on a database in a file, without HTTP, and a caller with credits enough. */
const startService = async (stage: Stage, { dnsServers, smtpPort, rcptMax, workers }: Setup) => {
  const config = configOf({
    POSTWARDEN_DNS_SERVERS: dnsServers,
    POSTWARDEN_SMTP_PORT: String(smtpPort),
    POSTWARDEN_MAX_CONNECTIONS_PER_HOST: String(AT_ONCE),
    POSTWARDEN_MAX_RCPT_PER_CONNECTION: String(rcptMax),
  });
  const db = openData(await newDataDir(stage, `checks-${rcptMax}-${workers}`));
  const platform = systemPlatform(config);
  const log = createLog("warn", systemClock, (line) => console.error(line));
  const startThread = workers === 0 ? null : createMailThreads(config, MAIN);
  const service = new Service({ config, db, log, platform, baseUrl: "http://127.0.0.1", startThread });
  service.accounts.accounts.create("bench", "scale");
  service.accounts.accounts.grantCredits("bench", 1_000_000, "bench");
  const key = service.accounts.keys.create({ account: "bench", mode: "live" });
  const caller = key.ok ? service.accounts.authenticate(`Bearer ${key.value.key}`) : undefined;
  if (caller === undefined || caller === "disabled") throw new Error("the account could not be prepared");
  const stop = async (): Promise<void> => {
    await service.engine.drain();
    await service.verification.runner.stop();
    service.engine.close();
    platform.close();
    db.close();
  };
  let wrong = 0;
  const check = async (email: string): Promise<void> => {
    const row = await service.verification.checks.request(
      caller,
      { email, source: null, idempotencyKey: null },
      WAIT_MS,
    );
    if (row.subStatus !== "catch_all") wrong++;
  };
  return { check, wrong: () => wrong, stop };
};

interface Round extends CpuTimes {
  readonly perSecond: number;
}

const timed = async (count: number, work: () => Promise<void>): Promise<Round> => {
  const startedMs = performance.now();
  const used = startCpuMeter(process.pid);
  await work();
  return { perSecond: count / ((performance.now() - startedMs) / 1000), ...used(count) };
};

/** The ways in which checks are measured: with a connection each or shared, with the mail servers in one thread or two. */
const WAYS = [
  {
    what: "a connection each",
    rcptMax: RCPT_OF_ONE_CHECK,
    addressOf: loneAddress,
    limits: { total: 330, eventLoop: 150 },
  },
  {
    what: "connections shared",
    rcptMax: RCPT_SHARED,
    addressOf: sharedAddress,
    limits: { total: 180, eventLoop: 100 },
  },
].flatMap((way) => ([1, 0] as const).map((workers) => ({ ...way, workers })));

/** Whole checks (DNS, SMTP, verdict, database) against smtp-sink, and bare sessions with it, in turns. */
export const measureChecks = async (stage: Stage): Promise<Mark[]> => {
  const smtpPort = await startSink(stage, "checks-sink");
  const { setting: dnsServers } = await startNames(stage, "checks-names", zone());
  const bare: Round[] = [];
  const ways = await Promise.all(
    WAYS.map(async (way) => ({
      ...way,
      service: await startService(stage, { dnsServers, smtpPort, ...way }),
      rounds: [] as Round[],
    })),
  );
  try {
    for (let round = -1; round < ROUNDS; round++) {
      const count = round < 0 ? WARM_UP : CHECKS;
      const from = round < 0 ? 0 : WARM_UP + round * CHECKS;
      bare.push(await timed(count, () => bareDialogues(smtpPort, count, AT_ONCE)));
      for (const { service, addressOf, rounds } of ways) {
        const check = (n: number) => service.check(addressOf(from + n));
        rounds.push(await timed(count, () => inTurns(Array(count).keys(), AT_ONCE, check)));
      }
    }
  } finally {
    for (const { service } of ways) await service.stop();
  }
  // The first round warmed up.
  const bareRounds = bare.slice(1);
  return [
    ...marksOf("bare Bun.connect sessions", bareRounds),
    ...ways.flatMap(({ what, workers, limits, rounds }) => {
      const name = `checks, ${what}${workers === 0 ? ", one thread" : ""}`;
      const { total, eventLoop } = limits;
      const measured = rounds.slice(1);
      return [
        ...marksOf(name, measured, workers === 0 ? { total } : { total, eventLoop }),
        shareOf(name, measured, bareRounds),
      ];
    }),
    {
      group: GROUP,
      what: "checks that ended otherwise",
      value: ways.reduce((sum, { service }) => sum + service.wrong(), 0),
      unit: "",
      limit: { most: 0 },
    },
  ];
};

const GROUP = "checks";

const marksOf = (what: string, rounds: readonly Round[], limits?: Parameters<typeof cpuMarks>[2]): Mark[] => {
  const value = Math.round(median(rounds.map(({ perSecond }) => perSecond)));
  const note = `median of ${rounds.length} rounds of ${CHECKS}, ${AT_ONCE} at once`;
  return [{ group: GROUP, what, value, unit: "/s", note }, ...cpuMarks({ group: GROUP, what }, rounds, limits)];
};

/** The processor time of bare sessions over that of checks: each round with that before it. */
const shareOf = (what: string, rounds: readonly Round[], bare: readonly Round[]): Mark => {
  const shares = rounds.map(({ total }, at) => (bare[at]?.total ?? Number.NaN) / total);
  return {
    group: GROUP,
    what: `${what}: processor time of a bare session over theirs`,
    value: median(shares),
    unit: "",
  };
};

const ZONE = {
  "turns.test": { MX: [[10, "mx.turns.test"]] },
  "mx.turns.test": { A: ["127.0.0.1"] },
} as const;

/** How often a check has to wait for the mail server, counted by the server: over a new connection and over a warm one. */
export const measureTurns = async (_stage: Stage): Promise<Mark[]> => {
  const stub = startSmtpStub({ rcpt: (address) => (address.startsWith("user") ? "250 Ok" : "550 5.1.1 Unknown user") });
  try {
    const connector = createDirectConnector({ clock: systemClock, mayConnect: () => true });
    const resolver = createZoneResolver(ZONE);
    const config = configOf({ POSTWARDEN_SMTP_PORT: String(stub.port) });
    const platform = { clock: systemClock, random: systemRandom, resolver, connector };
    const log = createLog("silent", systemClock, () => undefined);
    const { engines, smtp } = new EngineSlice(platform, config, { log, matchSuppression: () => null });
    const counts: number[] = [];
    for (const user of ["user1", "user2"]) {
      const { live } = engines;
      const attempted = await live.verify(live.begin(`${user}@turns.test`));
      const { attempts } = attempted.evidence;
      const reading = attempts[0]?.finding.reading;
      if (reading !== "accepted") throw new Error(`the server of turns was read as ${reading}`);
      counts.push(stub.sessions.reduce((sum, { turns }) => sum + turns, 0));
    }
    await smtp.pool.drain();
    const [first = Number.NaN, both = Number.NaN] = counts;
    const group = "turns";
    const note = `the real and the random recipient in one group; connections: ${stub.sessions.length}`;
    return [
      { group, what: "waits of a check, new connection", value: first, unit: "", limit: { most: 3 }, note },
      { group, what: "waits of a check, warm connection", value: both - first, unit: "", limit: { most: 1 } },
    ];
  } finally {
    stub.stop();
  }
};
