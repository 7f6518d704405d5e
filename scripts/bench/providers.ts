import { freePort } from "../harness/world.ts";
import { type Ask, type BulkService, postList, startForLists, untilEnded } from "./bulk.ts";
import { type Mark, median } from "./marks.ts";
import { mailDomain, startNames, startSinkAt } from "./servers.ts";
import type { Settings, Stage } from "./stage.ts";

/** Of the largest lists, three of five domains are at one of four providers. */
const DOMAINS = 5_000;
const SHARED_OF_FIVE = 3;
const PROVIDERS = 4;
/** Addresses of the mail hosts: those of the providers, and those that the other domains have. */
const SINKS = 16;
const ROUNDS = 2;
const ADDRESSES = 200_000;
const CONNECTIONS = 100;

const sinkAddress = (n: number): string => `127.0.1.${1 + (n % SINKS)}`;
const isShared = (domain: number): boolean => domain % 5 < SHARED_OF_FIVE;

const RECORDS = [
  ...Array.from({ length: PROVIDERS }, (_, n) => `mx.provider${n}.test. 600 IN A ${sinkAddress(n)}`),
  ...Array.from({ length: DOMAINS }, (_, n) => [
    ...mailDomain(`own${n}.test`, sinkAddress(n)),
    ...(isShared(n)
      ? [`real${n}.test. 600 IN MX 10 mx.provider${n % PROVIDERS}.test.`]
      : mailDomain(`real${n}.test`, sinkAddress(n))),
  ]).flat(),
];

/** `own`: each domain has a provider of its own; `real`: 60 % of them share four. */
type Shape = "own" | "real";

/** A list of `count` addresses. */
export const listOf = (shape: Shape, count: number, label: string): Blob => {
  const parts: string[] = ["id,email\n"];
  for (let row = 0; row < count; row++) parts.push(`${row},${label}${row}@${shape}${row % DOMAINS}.test\n`);
  return new Blob(parts);
};

/** Mail hosts and names for such lists, and the settings that make use of them. */
export const startProviders = async (stage: Stage, name: string): Promise<Settings> => {
  const port = freePort();
  for (let n = 0; n < SINKS; n++) await startSinkAt(stage, `${name}-sink${n}`, { address: sinkAddress(n), port });
  const names = await startNames(stage, `${name}-names`, RECORDS);
  return {
    POSTWARDEN_DNS_SERVERS: names.setting,
    POSTWARDEN_SMTP_PORT: String(port),
    POSTWARDEN_MAX_CONNECTIONS_PER_HOST: String(CONNECTIONS),
  };
};

const END_MS_MAX = 600_000;

const rateOf = async (ask: Ask, live: string, list: Blob, count: number): Promise<number> => {
  const id = await postList(ask, live, list);
  const startedMs = performance.now();
  const { catch_all: accepted = 0 } = await untilEnded(ask, live, id, END_MS_MAX);
  if (accepted !== count) throw new Error(`${count - accepted} results of a list are wrong`);
  return count / ((performance.now() - startedMs) / 1000);
};

const measureShapes = async ({ ask, live }: BulkService, count: number) => {
  const rates: Record<Shape, number[]> = { own: [], real: [] };
  for (let round = 0; round < ROUNDS; round++)
    for (const shape of ["own", "real"] as const)
      rates[shape].push(await rateOf(ask, live, listOf(shape, count, `${shape}${round}x`), count));
  return rates;
};

/** How fast a list is verified whose domains share providers, as most real ones do. */
export const measureProviders = async (stage: Stage): Promise<Mark[]> => {
  const running = await startForLists(stage, "providers", await startProviders(stage, "providers"));
  try {
    const count = ADDRESSES / (stage.isQuick ? 4 : 1);
    const { own, real } = await measureShapes(running, count);
    const group = "providers";
    const note = `${ROUNDS} lists of ${count.toLocaleString("en")} addresses at ${DOMAINS.toLocaleString("en")} domains`;
    const ratio = median(real) / median(own);
    return [
      { group, what: "a list, a provider for each domain", value: Math.round(median(own)), unit: "/s", note },
      { group, what: "a list, 60 % of domains at 4 providers", value: Math.round(median(real)), unit: "/s" },
      { group, what: "the second over the first", value: ratio, unit: "", limit: { least: 0.8 } },
    ];
  } finally {
    await running.service.stop();
  }
};
