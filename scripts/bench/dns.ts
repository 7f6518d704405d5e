import { join } from "node:path";
import { systemClock } from "../../src/foundation/base/clock.ts";
import { createDnsResolver } from "../../src/foundation/net/dns-resolver.ts";
import { inTurns } from "../harness/world.ts";
import { type Mark, median } from "./marks.ts";
import { type NameServer, needTools, startNames } from "./servers.ts";
import type { Stage } from "./stage.ts";

const NAMES = 10_000;
const QUESTIONS = 60_000;
const ROUNDS = 3;
const AT_ONCE = 200;

const nameOf = (n: number): string => `host${n % NAMES}.test`;

interface Round {
  readonly perSecond: number;
  /** Of our process, for each question. */
  readonly cpuUs: number;
  readonly lost: number;
}

/** Our client, without its cache: every question goes out. */
const askOurselves = async ({ address, port }: NameServer): Promise<Round> => {
  const resolver = createDnsResolver({ servers: [{ address, port }], clock: systemClock, cacheEntriesMax: 0 });
  let lost = 0;
  const [startedMs, startedCpu] = [performance.now(), process.cpuUsage()];
  await inTurns(Array(QUESTIONS).keys(), AT_ONCE, async (n) => {
    const { outcome } = await resolver.resolve(nameOf(n), "A");
    if (outcome !== "response") lost++;
  });
  const seconds = (performance.now() - startedMs) / 1000;
  const { user, system } = process.cpuUsage(startedCpu);
  resolver.close();
  return { perSecond: QUESTIONS / seconds, cpuUs: (user + system) / QUESTIONS, lost };
};

const askByDnsperf = async (
  { supervisor }: Stage,
  server: NameServer,
  questionsPath: string,
): Promise<Omit<Round, "cpuUs">> => {
  const passes = String(QUESTIONS / NAMES);
  const where = ["-s", server.address, "-p", String(server.port), "-d", questionsPath, "-n", passes];
  const said = await supervisor.run(["dnsperf", ...where, "-c", "1", "-T", "1", "-q", String(AT_ONCE)]);
  const perSecond = Number(/Queries per second:\s+([\d.]+)/.exec(said)?.[1]);
  return { perSecond, lost: Number(/Queries lost:\s+(\d+)/.exec(said)?.[1]) };
};

/** Our DNS client and dnsperf, one after the other, with the same questions to the same unbound. */
export const measureDns = async (stage: Stage): Promise<Mark[]> => {
  await needTools(stage.supervisor, "dnsperf");
  const names = Array.from({ length: NAMES }, (_, n) => nameOf(n));
  const questionsPath = join(stage.directory, "questions.txt");
  await Bun.write(questionsPath, names.map((name) => `${name} A`).join("\n"));
  const server = await startNames(
    stage,
    "dns-names",
    names.map((name) => `${name}. 600 IN A 127.0.0.1`),
  );
  const ours: Round[] = [];
  const dnsperf: Array<Omit<Round, "cpuUs">> = [];
  await askOurselves(server);
  for (let round = 0; round < ROUNDS; round++) {
    dnsperf.push(await askByDnsperf(stage, server, questionsPath));
    ours.push(await askOurselves(server));
  }
  const rate = (rounds: ReadonlyArray<Pick<Round, "perSecond">>) =>
    Math.round(median(rounds.map(({ perSecond }) => perSecond)));
  const lost = (rounds: ReadonlyArray<Pick<Round, "lost">>) => rounds.reduce((sum, round) => sum + round.lost, 0);
  const group = "dns";
  const note = `${AT_ONCE} at once, up to 32 on a socket; median of ${ROUNDS} rounds of ${QUESTIONS}`;
  return [
    { group, what: "questions", value: rate(ours), unit: "/s", limit: { least: 20_000 }, note },
    { group, what: "CPU of each question", value: median(ours.map(({ cpuUs }) => cpuUs)), unit: "µs" },
    { group, what: "questions lost", value: lost(ours), unit: "", limit: { most: 0 } },
    { group, what: "dnsperf", value: rate(dnsperf), unit: "/s", note: `one socket; lost ${lost(dnsperf)}` },
  ];
};
