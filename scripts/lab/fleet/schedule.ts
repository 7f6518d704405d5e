import type { Chance } from "./chance.ts";
import type { DomainPlan } from "./plan.ts";
import { type ReportFacts, type ReportMail, type Signer, reportMail } from "./report-mail.ts";
import { REPORTERS, type Reporter } from "./reporters.ts";
import { type Row, type Sight, type Truth, sightsOf, tagsOf } from "./traffic.ts";

export const DAY_S = 86_400;
const HOUR_MS = 3_600_000;
const DAY_MS = DAY_S * 1000;

/** A report mail on its way. */
export interface Delivery {
  readonly atMs: number;
  readonly domain: string;
  /** Made when it is sent, for the address is known then. */
  readonly mail: (to: string) => ReportMail;
}

export interface Times {
  /** Midnight of day 0, in milliseconds. */
  readonly startMs: number;
}

const idOf = (reporter: Reporter, domain: string, beginS: number, endS: number): string => {
  const hash = Bun.hash.crc32(`${reporter.domain} ${domain} ${beginS}`);
  if (reporter.org === "google.com") return `${hash}${beginS}`;
  return reporter.style.hasVersion ? `${domain}.${beginS}.${endS}` : `${beginS}.${hash}`;
};

const partsOf = ({ reporter, rows }: Sight, beginS: number, chance: Chance) => {
  const { periods } = reporter.style;
  const lengthS = DAY_S / periods;
  const parts = Array.from({ length: periods }, (_, at) => ({
    rows: [] as Sight["rows"][number][],
    beginS: beginS + at * lengthS,
    endS: beginS + (at + 1) * lengthS - 1,
  }));
  for (const row of rows) {
    const counts = chance.split(
      row.count,
      parts.map(() => 1),
    );
    for (const [at, part] of parts.entries()) {
      const count = counts[at] ?? 0;
      if (count > 0) part.rows.push({ ...row, count });
    }
  }
  return parts.filter(({ rows: own }) => own.length > 0);
};

export interface Scheduling extends Times {
  readonly chance: Chance;
  readonly signer: Signer;
  readonly truth: Truth;
  /** How much mail there is: 1 as planned, 0.1 a tenth. */
  readonly scale: number;
}

/** The mails about a day of a domain: of most reporters on the next day, a few late, a few twice. */
export const deliveriesOf = (plan: DomainPlan, day: number, scheduling: Scheduling): Delivery[] => {
  const { startMs, chance, signer } = scheduling;
  const beginS = startMs / 1000 + day * DAY_S;
  const record = plan.record(day);
  // Reporters look the address up when the day is over.
  const isAsked = plan.record(day + 1)?.includes("{rua}") === true && record?.includes("{rua}") === true;
  const sights = sightsOf(plan, day, scheduling);
  if (!isAsked || plan.isSilent?.(day) === true) return [];
  return sights.flatMap((sight) => {
    const { reporter } = sight;
    const own = chance.named(`${plan.name} ${day} ${reporter.org}`);
    return partsOf(sight, beginS, own).flatMap((part): Delivery[] => {
      const facts: ReportFacts = {
        ...{ domain: plan.name, reporter, rows: part.rows, tags: tagsOf(record ?? "") },
        ...{ beginS: part.beginS, endS: part.endS, reportId: idOf(reporter, plan.name, part.beginS, part.endS) },
      };
      const lateMs = own.hits(reporter.late) ? 2 * DAY_MS : 0;
      const atMs = (beginS + DAY_S) * 1000 + reporter.hour * HOUR_MS + lateMs + own.whole(0, 50) * 60_000;
      const one: Delivery = {
        atMs,
        domain: plan.name,
        mail: (to) => reportMail({ facts, signer, to, atMs }),
      };
      const again = { ...one, atMs: atMs + 3 * HOUR_MS };
      return own.hits(reporter.twice) ? [one, again] : [one];
    });
  });
};

/** The domain that signs lies. */
export const LIAR = "attacker-host.com";
export const FORGED_IP = "45.88.91.66";
/** What the ids of forged reports begin with, where they are not those of true ones. */
export const FORGED = "forged-";

/** The first day about which the liar sends reports in its own name, of far too many messages; it goes on for a week. */
export const EXCESSIVE_DAY = 42;
const EXCESSIVE_DAYS = 7;
const EXCESSIVE_COUNT = 1_000_000;

/**
 * Forged reports about a day, which claim to be Google's: one with the id of the true one before that comes, signed by the liar's own
 * domain; one with Google in From that nothing authenticates; one that is signed by the liar, with an id of its own. For a week the
 * liar also reports in its own name.
 */
export const forgeriesOf = (plan: DomainPlan, day: number, { startMs, signer }: Scheduling): Delivery[] => {
  const google = REPORTERS.google;
  if (plan.isReportForged !== true || google === undefined || day < 20 || day % 3 !== 0) return [];
  const beginS = startMs / 1000 + day * DAY_S;
  const endS = beginS + DAY_S - 1;
  const row: Row = {
    ...{ headerFrom: plan.name, envelope: plan.name, spf: { domain: plan.name, result: "pass" }, passedOn: null },
    ...{ dkim: [{ domain: plan.name, selector: "x", result: "pass" }], ip: FORGED_IP, count: 400 },
    ...{ isDkimAligned: true, isSpfAligned: true, disposition: "none" },
  };
  const facts = { domain: plan.name, reporter: google, rows: [row], tags: tagsOf("p=none"), beginS, endS };
  const atMs = (beginS + DAY_S) * 1000 + 2 * HOUR_MS;
  const signed = { domain: LIAR, proof: "dkim", ip: "45.88.90.10" } as const;
  const bare = { domain: "google.com", proof: "nothing", ip: "45.88.90.11" } as const;
  const own = { ...google, org: LIAR, domain: LIAR, local: "reports" };
  const excessive = { ...facts, reporter: own, rows: [{ ...row, count: EXCESSIVE_COUNT }], reportId: `own-${day}` };
  const forged = (reportId: string, as: typeof signed | typeof bare, hour: number): Delivery => ({
    ...{ atMs: atMs + hour * HOUR_MS, domain: plan.name },
    mail: (to) => reportMail({ facts: { ...facts, reportId }, signer, to, atMs: atMs + hour * HOUR_MS, as }),
  });
  return [
    forged(idOf(google, plan.name, beginS, endS), signed, 0),
    forged(`${FORGED}bare-${day}`, bare, 1),
    forged(`${FORGED}signed-${day}`, signed, 1),
    ...(day < EXCESSIVE_DAY || day >= EXCESSIVE_DAY + EXCESSIVE_DAYS
      ? []
      : [
          {
            atMs,
            domain: plan.name,
            mail: (to: string) => reportMail({ facts: excessive, signer, to, atMs, as: signed }),
          },
        ]),
  ];
};
