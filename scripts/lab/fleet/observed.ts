import { z } from "zod";
import type { FleetWorld } from "./world.ts";

/** What is read of the interface; whatever else it says is passed over. */
const Source = z.object({
  key: z.string(),
  name: z.string(),
  service: z.string().nullish(),
  classification: z.string(),
  messages: z.number(),
  aligned: z.number(),
});
const Sources = z.object({ sources: z.array(Source), next_cursor: z.string().nullable() });

const SeenRecord = z.object({
  date: z.string(),
  source_ip: z.string(),
  source: z.string(),
  count: z.number(),
  aligned: z.boolean(),
  report: z.object({ org_name: z.string().nullable(), report_id: z.string().nullable() }),
});
const Records = z.object({ records: z.array(SeenRecord), next_cursor: z.string().nullable() });

const Alert = z.object({
  rule: z.string(),
  subject: z.string(),
  at: z.string(),
  summary: z.string(),
  data: z.record(z.string(), z.unknown()),
});
const Alerts = z.object({ alerts: z.array(Alert), next_cursor: z.string().nullable() });

const AdviceSeen = z.object({
  stage: z.string(),
  ready: z.boolean(),
  next: z
    .object({ action: z.string(), record: z.string().nullable(), why: z.string(), steps: z.array(z.string()) })
    .nullable(),
  requirements: z.array(z.object({ code: z.string(), met: z.boolean(), message: z.string() })),
  notes: z.array(z.object({ code: z.string(), message: z.string() })),
});

export type SeenSource = z.infer<typeof Source>;
export type SeenAlert = z.infer<typeof Alert>;
export type SeenAdvice = z.infer<typeof AdviceSeen>;

/** Messages of an address under a source on a day. */
export interface SeenRow {
  readonly ip: string;
  readonly day: string;
  readonly source: string;
  readonly count: number;
  readonly reportId: string;
}

export interface Observed {
  readonly sources: readonly SeenSource[];
  readonly rows: readonly SeenRow[];
  readonly alerts: readonly SeenAlert[];
  /** The reporters of `/summary`, each as its JSON. */
  readonly reporters: readonly string[];
  readonly ingestions: readonly { readonly outcome: string; readonly reason: string | null }[];
}

interface Pages<T> {
  readonly path: string;
  readonly read: (answer: unknown) => { readonly items: readonly T[]; readonly next: string | null };
}

const allPages = async <T>(world: FleetWorld, { path, read }: Pages<T>): Promise<T[]> => {
  const all: T[] = [];
  for (let cursor: string | null = ""; cursor !== null;) {
    const after = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const { items, next } = read(await world.ask("GET", `${path}${path.includes("?") ? "&" : "?"}limit=1000${after}`));
    all.push(...items);
    cursor = next;
  }
  return all;
};

export const readAdvice = async (world: FleetWorld, id: string): Promise<SeenAdvice> =>
  AdviceSeen.parse(await world.ask("GET", `/v1/dmarc/domains/${id}/advice`));

export const readSources = (world: FleetWorld, id: string, range: string): Promise<SeenSource[]> =>
  allPages(world, {
    path: `/v1/dmarc/domains/${id}/sources?${range}`,
    read: (answer) => {
      const { sources, next_cursor: next } = Sources.parse(answer);
      return { items: sources, next };
    },
  });

export const readRows = (world: FleetWorld, id: string, range: string): Promise<SeenRow[]> =>
  allPages(world, {
    path: `/v1/dmarc/domains/${id}/records?${range}`,
    read: (answer) => {
      const { records, next_cursor: next } = Records.parse(answer);
      const items = records.map(({ source_ip: ip, date: day, source, count, report }) => ({
        ...{ ip, day, source, count },
        reportId: report.report_id ?? "",
      }));
      return { items, next };
    },
  });

const Summary = z.object({ top_reporters: z.array(z.looseObject({ org_name: z.string().nullable() })) });
const Ingestion = z.object({
  domain_id: z.string().nullish(),
  outcome: z.string().nullable(),
  reason: z.string().nullish(),
});
const Ingestions = z.object({ ingestions: z.array(Ingestion), next_cursor: z.string().nullable() });

/** Everything that the interface says of a domain in a range of days (`from=…&to=…`). */
export const observe = async (world: FleetWorld, id: string, range: string): Promise<Observed> => {
  const place = `/v1/dmarc/domains/${id}`;
  const sources = await readSources(world, id, range);
  const rows = await readRows(world, id, range);
  const alerts = await allPages<SeenAlert>(world, {
    path: `${place}/alerts`,
    read: (answer) => {
      const { alerts: items, next_cursor: next } = Alerts.parse(answer);
      return { items, next };
    },
  });
  const summary = Summary.parse(await world.ask("GET", `${place}/summary?${range}`));
  const ingestions = await allPages(world, {
    path: `/v1/dmarc/ingestions?domain_id=${id}`,
    read: (answer) => {
      const { ingestions: items, next_cursor: next } = Ingestions.parse(answer);
      return { items: items.map(({ outcome, reason }) => ({ outcome: outcome ?? "", reason: reason ?? null })), next };
    },
  });
  const reporters = summary.top_reporters.map((reporter) => JSON.stringify(reporter));
  return { sources, rows, alerts: alerts.toReversed(), reporters, ingestions };
};
