import { isoDay } from "../../../src/foundation/base/days.ts";
import { reverseQueryName } from "../../../src/foundation/net/dns-name.ts";
import { createAddresses } from "./addresses.ts";
import { createBuilder } from "./builder.ts";
import { createChance } from "./chance.ts";
import { type FleetDns, createFleetDns } from "./dns.ts";
import { advisedDomains } from "./domains-advice.ts";
import { attackedDomains } from "./domains-attacked.ts";
import { volumeDomains } from "./domains-volume.ts";
import { eventfulDomains } from "./domains-eventful.ts";
import { hostDomains } from "./domains-hosts.ts";
import { quietDomains } from "./domains-quiet.ts";
import { hostingDomains } from "./domains-hosting.ts";
import { unalignedDomains } from "./domains-unaligned.ts";
import { type Observed, type SeenAdvice, observe, readAdvice, readRows, readSources } from "./observed.ts";
import type { Checkpoint, DomainPlan } from "./plan.ts";
import { createSigner, publishReporters, publishSigner } from "./report-mail.ts";
import { DAY_S, type Delivery, LIAR, type Scheduling, deliveriesOf, forgeriesOf } from "./schedule.ts";
import type { Truth } from "./traffic.ts";
import { type FleetWorld, REPORT_HOST, createFleetClock, startWorld } from "./world.ts";
import { z } from "zod";

interface FleetChoice {
  readonly key: string;
  readonly only: RegExp;
  /** Only the domains that the lab simulates: half of them, because time is short there. */
  readonly isCore: boolean;
}

/** All plans of a seed; only those whose name or theme fits. Publishes the DNS records that do not depend on the day. */
export const fleetOf = (seed: number, dns: FleetDns, { key, only, isCore }: FleetChoice): DomainPlan[] => {
  const addresses = createAddresses(dns, createChance(seed).named("addresses"));
  const builder = createBuilder(addresses, key);
  const core = [quietDomains, unalignedDomains, attackedDomains, eventfulDomains];
  const makers = isCore ? core : [...core, hostingDomains, advisedDomains, volumeDomains, hostDomains];
  const plans = makers.flatMap((make) => make(builder));
  return plans.filter(({ name, theme }) => only.test(name) || only.test(theme));
};

/** A Monday. */
export const START_MS = Date.UTC(2026, 2, 2);
const HOUR_MS = 3_600_000;
const DAY_MS = DAY_S * 1000;
const HOURS = 24;
/** Reports come a day later, some later still. */
const DAYS_AFTER = 3;
const CHECKPOINT_HOUR = 21;
/** Days on which the classes of the week before are looked at. */
const WEEK_DAYS: readonly number[] = [16, 32, 53];
/** Days on which the service ends and starts again. */
const RESTART_DAYS: readonly number[] = [22, 37, 61];
const RESTART_HOUR = 13;
/** Days of reports that an owner brings along who enrols later. */
const HISTORY_DAYS = 40;
/** The day of all that is published before the simulation begins. */
const BEFORE = -100;

export interface SimulationOptions {
  readonly seed: number;
  readonly days: number;
  readonly only: RegExp;
  /** Only the domains that the lab simulates. */
  readonly isCore: boolean;
  /** How much mail there is: 1 as planned, 0.1 a tenth. */
  readonly scale: number;
  /** Told once a simulated week. */
  readonly tell?: (text: string) => void;
}

/** What was shown of a week while it was new. */
export interface Week extends Pick<Observed, "sources" | "rows"> {
  readonly day: number;
}

/** A domain of the fleet after the simulation. */
export interface Simulated {
  readonly plan: DomainPlan;
  readonly truth: Truth;
  readonly observed: Observed;
  readonly advice: ReadonlyArray<{ readonly checkpoint: Checkpoint; readonly seen: SeenAdvice }>;
  /** What the interface said of the last week, on some days. */
  readonly weeks: readonly Week[];
  readonly mails: readonly { readonly subject: string; readonly text: string }[];
}

export interface SimulationResult {
  readonly domains: readonly Simulated[];
  readonly startMs: number;
  readonly reportMails: number;
  readonly logged: readonly string[];
  /** Every mail in the order of its arrival, for a second service. */
  readonly deliveries: readonly Delivery[];
}

interface Enrolled {
  readonly id: string;
  readonly address: string;
}

const Enrolment = z.object({ domain: z.object({ id: z.string(), reporting_address: z.string() }) });

export const recipientOf = (domain: string): string => `owner@ops.${domain}`;

const publishRecord = (
  dns: FleetDns,
  plan: DomainPlan,
  { day, hour = 0, address }: { day: number; hour?: number; address: string },
): void => {
  const lapse = plan.lapses?.find(({ day: on, hours: [from, to] }) => on === day && hour >= from && hour < to);
  const record = lapse?.record ?? plan.record(day);
  const name = `_dmarc.${plan.name}`;
  dns.fail(name, plan.isUnreachable?.(day) === true);
  if (record === null) dns.remove(name);
  else dns.set(name, { TXT: [`v=DMARC1; ${record.replace("{rua}", `rua=mailto:${address}`)}`] });
};

const applyDns = (dns: FleetDns, plan: DomainPlan, day: number): void => {
  for (const change of plan.dns) {
    if (change.day !== day) continue;
    if (change.records === null) dns.remove(change.name);
    else dns.set(change.name, change.records);
  }
};

export const enrol = async (world: FleetWorld, plan: DomainPlan, day: number): Promise<Enrolled> => {
  const body = { domain: plan.name, recipients: [recipientOf(plan.name)] };
  const { domain } = Enrolment.parse(await world.ask("POST", "/v1/dmarc/domains", body));
  const { id, reporting_address: address } = domain;
  world.dns.set(`${plan.name}._report._dmarc.${REPORT_HOST}`, { TXT: ["v=DMARC1;"] });
  publishRecord(world.dns, plan, { day, address });
  await world.ask("POST", `/v1/dmarc/domains/${id}/verify`);
  await world.ask("PATCH", `/v1/dmarc/domains/${id}`, { digest: "weekly" });
  return { id, address };
};

interface Run {
  readonly world: FleetWorld;
  readonly plans: readonly DomainPlan[];
  readonly truths: ReadonlyMap<string, Truth>;
  readonly enrolled: Map<string, Enrolled>;
  readonly advice: Map<string, { checkpoint: Checkpoint; seen: SeenAdvice }[]>;
  readonly weeks: Map<string, Week[]>;
  readonly scheduling: (plan: DomainPlan) => Scheduling;
}

const bringHistory = async ({ world, scheduling }: Run, plan: DomainPlan, day: number): Promise<number> => {
  let mails = 0;
  for (let past = day - HISTORY_DAYS; past < day - 1; past++) {
    for (const { mail } of deliveriesOf(plan, past, scheduling(plan))) {
      await world.ask("POST", "/v1/dmarc/reports", mail("reports@old-service.net").bytes);
      mails++;
    }
  }
  return mails;
};

/** What happens at the beginning of a day. */
const beginDay = async (run: Run, day: number): Promise<Delivery[]> => {
  const { world, plans, enrolled } = run;
  const next: Delivery[] = [];
  for (const plan of plans) {
    applyDns(world.dns, plan, day);
    const enrolDay = plan.enrolDay ?? 0;
    if (day === enrolDay) {
      enrolled.set(plan.name, await enrol(world, plan, day));
      if (enrolDay > 0) await bringHistory(run, plan, day);
    }
    const known = enrolled.get(plan.name);
    if (known === undefined) continue;
    publishRecord(world.dns, plan, { day, address: known.address });
    for (const change of plan.changes ?? [])
      if (change.day === day) await world.ask("PATCH", `/v1/dmarc/domains/${known.id}`, change.body);
    if (day === enrolDay) continue;
    next.push(
      ...deliveriesOf(plan, day - 1, run.scheduling(plan)),
      ...forgeriesOf(plan, day - 1, run.scheduling(plan)),
    );
  }
  return next;
};

const readCheckpoints = async ({ world, plans, enrolled, advice }: Run, day: number): Promise<void> => {
  for (const plan of plans) {
    for (const checkpoint of plan.checkpoints) {
      const known = enrolled.get(plan.name);
      if (checkpoint.day !== day || known === undefined) continue;
      const seen = await readAdvice(world, known.id);
      advice.set(plan.name, [...(advice.get(plan.name) ?? []), { checkpoint, seen }]);
    }
  }
};

const readWeek = async ({ world, plans, enrolled, weeks }: Run, day: number): Promise<void> => {
  if (!WEEK_DAYS.includes(day)) return;
  for (const { name } of plans) {
    const id = enrolled.get(name)?.id;
    if (id === undefined) continue;
    const range = `from=${isoOf(day - 8)}&to=${isoOf(day - 1)}`;
    const seen = { day, sources: await readSources(world, id, range), rows: await readRows(world, id, range) };
    weeks.set(name, [...(weeks.get(name) ?? []), seen]);
  }
};

const live = async (run: Run, { days, tell }: SimulationOptions): Promise<Delivery[]> => {
  const { world, enrolled } = run;
  const sent: Delivery[] = [];
  let waiting: Delivery[] = [];
  for (let hour = 0; hour < (days + DAYS_AFTER) * HOURS; hour++) {
    const [day, ofDay] = [Math.floor(hour / HOURS), hour % HOURS];
    const atMs = START_MS + hour * HOUR_MS + 5 * 60_000;
    if (ofDay === 0 && day <= days) waiting.push(...(await beginDay(run, day)));
    const due = waiting.filter((one) => one.atMs <= atMs).toSorted((a, b) => a.atMs - b.atMs);
    waiting = waiting.filter((one) => one.atMs > atMs);
    for (const plan of run.plans) {
      for (const { ip, day: from, hours } of plan.unanswered ?? [])
        world.dns.fail(reverseQueryName(ip), hour >= from * HOURS && hour < from * HOURS + hours);
      const address = enrolled.get(plan.name)?.address;
      if (address !== undefined && plan.lapses !== undefined)
        publishRecord(world.dns, plan, { day, hour: ofDay, address });
    }
    await Promise.all(
      due.map(async ({ domain, mail }) => {
        const address = enrolled.get(domain)?.address;
        if (address !== undefined) await world.receive(mail(address), address);
      }),
    );
    sent.push(...due);
    await world.work(atMs, ofDay === 2);
    if (ofDay === RESTART_HOUR && RESTART_DAYS.includes(day)) await world.restart();
    if (ofDay === CHECKPOINT_HOUR) {
      await readCheckpoints(run, day);
      await readWeek(run, day);
    }
    if (ofDay === 0 && day % 7 === 0)
      tell?.(`day ${day}, ${sent.length} report mails, ${world.sink.mails.length} mails`);
  }
  return sent;
};

const isoOf = (day: number): string => isoDay(START_MS / DAY_MS + day);

/** The range of all days, as a query. */
export const rangeOf = (days: number): string => `from=${isoOf(-HISTORY_DAYS)}&to=${isoOf(days + DAYS_AFTER)}`;

/** Lives through all days, and reads what the service says at the end. */
export const simulate = async (options: SimulationOptions): Promise<SimulationResult> => {
  const { seed, days, only, isCore, scale } = options;
  const dnsClock = createFleetClock(START_MS);
  const state = { nowMs: dnsClock.nowMs };
  const dns = createFleetDns(() => state.nowMs());
  const signer = createSigner();
  publishReporters(dns, signer);
  publishSigner(dns, signer, LIAR);
  const plans = fleetOf(seed, dns, { key: signer.record, only, isCore });
  const world = await startWorld(START_MS, dns);
  state.nowMs = world.clock.nowMs;
  const truths = new Map(plans.map(({ name }): [string, Truth] => [name, new Map()]));
  const chance = createChance(seed);
  const run: Run = {
    ...{ world, plans, truths, enrolled: new Map(), advice: new Map(), weeks: new Map() },
    scheduling: ({ name }) => ({ startMs: START_MS, chance, signer, truth: truths.get(name) ?? new Map(), scale }),
  };
  try {
    for (const plan of plans) applyDns(dns, plan, BEFORE);
    const deliveries = await live(run, options);
    const domains: Simulated[] = [];
    for (const plan of plans) {
      const id = run.enrolled.get(plan.name)?.id;
      if (id === undefined) continue;
      domains.push({
        ...{ plan, truth: truths.get(plan.name) ?? new Map(), advice: run.advice.get(plan.name) ?? [] },
        weeks: run.weeks.get(plan.name) ?? [],
        observed: await observe(world, id, rangeOf(days)),
        mails: world.sink.mails.filter(({ to }) => to === recipientOf(plan.name)),
      });
    }
    return { domains, startMs: START_MS, reportMails: deliveries.length, logged: world.logged, deliveries };
  } finally {
    await world.close();
  }
};
