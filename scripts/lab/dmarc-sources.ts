import { z } from "zod";
import type { Api, Enrolled } from "./dmarc-api.ts";
import { type Claim, claim } from "./claims.ts";
import type { Zone } from "./dmarc-dns.ts";
import { DOMAINS, GOOGLE_SERVER, OWN_SERVER, SENDGRID_SERVER } from "./dmarc-truth.ts";

const THEME = "DMARC sources";
const DOMAIN = DOMAINS.reject;
/** Reverse names are looked up once a minute. */
const LOOKED_UP_MS_MAX = 150_000;
const DAY_MS = 86_400_000;
const NETWORK = "net:203.0.113.0/24";

const reverseOf = (ip: string): string => `${ip.split(".").toReversed().join(".")}.in-addr.arpa`;

/** Reverse names that lead back to their addresses. All other addresses of the reports have none. */
const NAMES: ReadonlyArray<readonly [ip: string, name: string]> = [
  [OWN_SERVER, `mail.${DOMAIN}`],
  [GOOGLE_SERVER, "mail-sor-f41.google.com"],
  [SENDGRID_SERVER, "o7.ptr1234.sendgrid.net"],
];

/** What the name server says of the addresses that sent mail. */
export const REVERSE_ZONE: Zone = Object.fromEntries(
  NAMES.flatMap(([ip, name]) => [
    [reverseOf(ip), [`PTR ${name}.`]],
    [name, [`A ${ip}`]],
  ]),
);

/** Who sends in the name of the domain. The servers of `own` without a reverse name sign, or pass SPF, for the domain. */
const EXPECTED: readonly string[] = [
  "own authorized: 37 messages, 37 aligned",
  "service:google-workspace authorized: 20 messages, 20 aligned",
  "service:sendgrid authorized: 25 messages, 25 aligned",
  "unauthenticated threat: 14 messages, 0 aligned",
];

const source = z.object({
  key: z.string(),
  classification: z.string(),
  classified_by: z.string(),
  messages: z.number(),
  aligned: z.number(),
  lookups_pending: z.boolean(),
});
type Source = z.output<typeof source>;

const lineOf = ({ key, classification, messages, aligned }: Source): string =>
  `${key} ${classification}: ${messages} messages, ${aligned} aligned`;

const range = (): string => {
  const isoDay = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
  return `from=${isoDay(Date.now() - 2 * DAY_MS)}&to=${isoDay(Date.now())}`;
};

/** The sources of the domain as soon as all reverse names are known. */
const whenLookedUp = async (api: Api, path: string): Promise<readonly Source[]> => {
  for (const endsAtMs = Date.now() + LOOKED_UP_MS_MAX; ; await Bun.sleep(500)) {
    const sources = await api.all(source, "sources", `${path}?${range()}`);
    if (sources.every(({ lookups_pending }) => !lookups_pending) || Date.now() > endsAtMs) return sources;
  }
};

/** Classifies the network that most forged mail comes from, takes that back, and answers how it is listed both times. */
const classifyNetwork = async (api: Api, path: string): Promise<readonly string[]> => {
  const change = (classification: string | null) =>
    api.ask(z.object({ sources: z.array(source) }), "PATCH", path, { keys: [NETWORK], classification });
  const listed = async (): Promise<string> => {
    const sources = await api.all(source, "sources", `${path}?${range()}`);
    const found = sources.find(({ key }) => key === NETWORK);
    return found === undefined ? "not listed" : `${found.classification} by ${found.classified_by}`;
  };
  await change("misconfigured");
  const classified = await listed();
  await change(null);
  return [classified, await listed()];
};

/** Senders that sign alike are told apart, and unauthenticated mail of addresses without a name is one source. */
export const judgeSources = async (api: Api, enrolled: ReadonlyMap<string, Enrolled>): Promise<readonly Claim[]> => {
  const path = `/domains/${enrolled.get(DOMAIN)?.domain.id}/sources`;
  const lines = (await whenLookedUp(api, path)).map(lineOf);
  const [classified = "", restored = ""] = await classifyNetwork(api, path);
  return [
    ...EXPECTED.map((line) => {
      const [key = ""] = line.split(" ");
      const got = lines.find((each) => each.startsWith(`${key} `)) ?? "not listed";
      return claim(THEME, `${DOMAIN}, ${key}`, line, got);
    }),
    claim(THEME, `${NETWORK} classified`, "misconfigured by user", classified),
    claim(THEME, `${NETWORK}, classification taken back`, "not listed", restored),
  ];
};
