import { createChance } from "./chance.ts";
import { createFleetDns } from "./dns.ts";
import { readSources } from "./observed.ts";
import { createSigner, publishReporters, publishSigner } from "./report-mail.ts";
import { LIAR, deliveriesOf } from "./schedule.ts";
import type { Claim } from "./score-claims.ts";
import { START_MS, enrol, fleetOf, rangeOf } from "./simulate.ts";
import { startWorld } from "./world.ts";

const DAY_MS = 86_400_000;
/** Small domains of different kinds suffice. */
const DOMAINS = /openharbor|brueckner|halden|maplehome/;
const DAYS = 21;
const AFTER_MS = 2 * DAY_MS;
const SHUFFLES = 2;

/** What the sources say when the reports come in one order: two lines are the same when their texts are. */
const sourcesAfter = async (seed: number, shuffle: number): Promise<string[]> => {
  const nowMs = START_MS + DAYS * DAY_MS + AFTER_MS;
  const dns = createFleetDns(() => nowMs);
  const signer = createSigner();
  publishReporters(dns, signer);
  publishSigner(dns, signer, LIAR);
  const plans = fleetOf(seed, dns, { key: signer.record, only: DOMAINS, isCore: true });
  const world = await startWorld(nowMs, dns);
  const order = createChance(shuffle);
  try {
    const mails: { readonly at: number; readonly take: () => Promise<void> }[] = [];
    const ids: string[] = [];
    for (const plan of plans) {
      const { id, address } = await enrol(world, plan, 0);
      ids.push(id);
      const scheduling = { startMs: START_MS, chance: createChance(seed), signer, truth: new Map(), scale: 1 };
      for (let day = 0; day < DAYS; day++)
        for (const { mail } of deliveriesOf(plan, day, scheduling))
          mails.push({ at: order.next(), take: () => world.receive(mail(address), address) });
    }
    for (const { take } of mails.toSorted((a, b) => a.at - b.at)) await take();
    for (let minute = 1; minute <= 10; minute++) await world.work(nowMs + minute * 60 * 60_000, false);
    const lines: string[] = [];
    for (const id of ids) {
      const sources = await readSources(world, id, rangeOf(DAYS));
      const texts = sources.map(
        ({ key, classification, messages, aligned }) => `${key} ${classification} ${messages} ${aligned}`,
      );
      lines.push(...texts.toSorted());
    }
    return lines;
  } finally {
    await world.close();
  }
};

/** Whether the same reports in another order make the same sources. */
export const orderClaim = async (seed: number): Promise<Claim> => {
  const runs: string[][] = [];
  for (let shuffle = 1; shuffle <= SHUFFLES; shuffle++) runs.push(await sourcesAfter(seed, shuffle));
  const [first = [], second = []] = runs;
  const different = new Set(first).symmetricDifference(new Set(second)).size;
  const got = `${different} of ${first.length}`;
  return {
    what: "sources that differ when reports come in another order",
    expected: `0 of ${first.length}`,
    got,
    isRight: different === 0,
  };
};
