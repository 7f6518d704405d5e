import { z } from "zod";
import type { Subject } from "./ask.ts";
import { OUTAGE_HTTP } from "./hosts.ts";
import { OUTAGE_DNS, type Switched, switchedDns, switchedMailHost } from "./outage-servers.ts";
import type { Supervisor } from "./processes.ts";
import { startService } from "./run.ts";

const THEME = "outage";
const BASE = `http://${OUTAGE_HTTP.ip}:${OUTAGE_HTTP.port}`;
const ADDRESSES = 2_000;
const DOMAINS = 500;
/** How long it is away, and how long the rest of the list may take then. */
const AWAY_MS_MAX = 15_000;
const END_MS_MAX = 60_000;
const AWAY_MS = 3_000;

const Job = z.object({
  id: z.string(),
  status: z.string(),
  paused_reason: z.string().nullable(),
  addresses: z.object({ finished: z.number() }),
  sub_statuses: z.record(z.string(), z.number()),
  credits: z.object({ held: z.number(), charged: z.number(), released: z.number() }),
});
type Job = z.infer<typeof Job>;

/** One claim about an outage, and whether it held. */
export interface OutageCell {
  readonly what: string;
  readonly expected: string;
  readonly got: string;
  readonly right: boolean;
}

const cellOf = (what: string, expected: string, got: string): OutageCell => ({
  what: `${THEME}: ${what}`,
  expected,
  got,
  right: expected === got,
});

/** Every third address does not exist. */
const emailsOf = (name: string): string[] =>
  Array.from(
    { length: ADDRESSES },
    (_, n) => `${n % 3 === 0 ? "nobody" : "known"}${n}@${name}${n % DOMAINS}.outage.test`,
  );

const readJob = async (path: string, key: string, emails?: readonly string[]): Promise<Job> => {
  const headers = { authorization: `Bearer ${key}` };
  const request = emails === undefined ? { headers } : { headers, method: "POST", body: JSON.stringify({ emails }) };
  return Job.parse(await (await fetch(`${BASE}/v1/bulk-verifications${path}`, request)).json());
};

const until = async (read: () => Promise<Job>, isSo: (job: Job) => boolean, msMax: number): Promise<Job> => {
  let job = await read();
  for (const endsAtMs = performance.now() + msMax; !isSo(job) && performance.now() < endsAtMs; job = await read())
    await Bun.sleep(50);
  return job;
};

const unsettledOf = ({ sub_statuses: counts }: Job): string => {
  const unsettled = Object.keys(counts).filter((one) => one !== "mailbox_exists" && one !== "mailbox_not_found");
  return unsettled.length === 0 ? "none" : unsettled.join(", ");
};

/** A list during which something goes away and comes back; nothing may end unsettled because of it. */
const runList = async (key: string, gone: Switched, about: { name: string; reason: string }): Promise<OutageCell[]> => {
  const { name, reason } = about;
  const { id } = await readJob("", key, emailsOf(name));
  const read = () => readJob(`/${id}`, key);
  await until(read, ({ addresses }) => addresses.finished > 0, END_MS_MAX);
  gone.off();
  const paused = await until(read, (job) => job.paused_reason !== null, AWAY_MS_MAX);
  const ready = await fetch(`${BASE}/readyz`);
  await Bun.sleep(AWAY_MS);
  const later = await read();
  await gone.on();
  const ended = await until(read, ({ status }) => status !== "running", END_MS_MAX);
  const missing = Math.ceil(ADDRESSES / 3);
  const truth = { mailbox_exists: ADDRESSES - missing, mailbox_not_found: missing };
  const { held, charged, released } = ended.credits;
  return [
    cellOf(`${name}: paused_reason`, `running ${reason}`, `${paused.status} ${paused.paused_reason}`),
    cellOf(`${name}: /readyz meanwhile`, "503", String(ready.status)),
    cellOf(`${name}: unsettled meanwhile`, "none", unsettledOf(later)),
    cellOf(`${name}: the end`, "completed null", `${ended.status} ${ended.paused_reason}`),
    cellOf(
      `${name}: results`,
      JSON.stringify(truth),
      JSON.stringify(Object.fromEntries(Object.entries(ended.sub_statuses).toSorted())),
    ),
    cellOf(`${name}: credits`, `0 ${ADDRESSES} 0`, `${held} ${charged} ${released}`),
  ];
};

/** A resolver that disappears in the middle of a list, and a firewall that refuses for a while. */
export const runOutage = async (supervisor: Supervisor, lab: Subject): Promise<readonly OutageCell[]> => {
  const [dns, mailHost] = [switchedDns(), switchedMailHost()];
  await Promise.all([dns.on(), mailHost.on()]);
  try {
    const environment = {
      ...lab.environment,
      POSTWARDEN_DNS_SERVERS: `${OUTAGE_DNS.ip}:${OUTAGE_DNS.port}`,
      POSTWARDEN_DNSBL_SIGNAL: "off",
    };
    const key = await startService(supervisor, { ...lab, environment }, { name: "serve-outage", ...OUTAGE_HTTP });
    const resolver = await runList(key, dns, { name: "resolver", reason: "dns_unavailable" });
    const firewall = await runList(key, mailHost, { name: "firewall", reason: "smtp_unreachable" });
    return [...resolver, ...firewall];
  } finally {
    dns.off();
    mailHost.off();
  }
};

/** What was wrong, line by line, and the score. */
export const claimsText = (theme: string, cells: readonly OutageCell[]): string =>
  cells.length === 0
    ? ""
    : [
        ...cells
          .filter(({ right }) => !right)
          .map(({ what, expected, got }) => `  ${what}\n    expected ${expected}\n    got      ${got}`),
        `${theme}: ${cells.filter(({ right }) => right).length}/${cells.length}`,
        "",
      ].join("\n");
