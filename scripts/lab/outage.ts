import { sendUdp } from "../../src/testing/dns-server.ts";
import { type Claim, claim } from "./claims.ts";
import type { Subject } from "./ask.ts";
import { DNS, OUTAGE_HTTP, SMTP_PORT } from "./hosts.ts";
import type { Supervisor } from "./processes.ts";
import { startService } from "./run.ts";
import * as packet from "dns-packet";
import { z } from "zod";

/** The name server and the mail hosts that disappear for a while. Every address of 127.0.0.0/8 is there on Linux. */
const OUTAGE_DNS = { ip: "127.10.9.53", port: DNS.port } as const;
const MAIL_HOST_IP = "127.10.9.1";
/** A user of any of its domains; nobody else exists there. */
const KNOWN_USER = /<known/i;

/** Something that can be switched off, so that its port refuses, and on again. */
interface Switched {
  on(): Promise<void>;
  off(): void;
}

const recordsOf = (name: string, type: string): packet.Answer[] => {
  const about = { name, ttl: 5 };
  if (type === "MX") return [{ ...about, type, data: { preference: 10, exchange: `mx.${name}` } }];
  if (type === "A") return [{ ...about, type, data: MAIL_HOST_IP }];
  return type === "NS" ? [{ ...about, type, data: "ns.outage.test" }] : [];
};

const ZONE: packet.Answer = {
  type: "SOA",
  name: "test",
  ttl: 5,
  data: { mname: "ns.test", rname: "root.test", serial: 1, refresh: 60, retry: 60, expire: 60, minimum: 5 },
};

const respond = (bytes: Uint8Array): Buffer => {
  const query = packet.decode(Buffer.from(bytes));
  const [question] = query.questions ?? [];
  const answers = question === undefined ? [] : recordsOf(question.name, question.type);
  return packet.encode({
    type: "response",
    id: query.id ?? 0,
    flags: packet.RECURSION_DESIRED | packet.RECURSION_AVAILABLE,
    questions: query.questions ?? [],
    answers,
    authorities: answers.length === 0 ? [ZONE] : [],
  });
};

/** The later a domain stands in a list, the longer its answer takes, so that many are still asked for when the server goes away. */
const MS_PER_DOMAIN = 4;

const delayMsOf = (bytes: Uint8Array): number => {
  const [question] = packet.decode(Buffer.from(bytes)).questions ?? [];
  return Number(/\d+/.exec(question?.name ?? "")?.[0] ?? 0) * MS_PER_DOMAIN;
};

/** A name server on `OUTAGE_DNS` that knows every domain. */
const switchedDns = (): Switched => {
  let socket: Bun.udp.Socket<"buffer"> | null = null;
  return {
    async on() {
      socket = await Bun.udpSocket({
        hostname: OUTAGE_DNS.ip,
        port: OUTAGE_DNS.port,
        socket: {
          data: async (self, bytes, port, address) => {
            const response = respond(bytes);
            await Bun.sleep(delayMsOf(bytes));
            if (self === socket) sendUdp(self, response, port, address);
          },
          error: () => undefined,
        },
      });
    },
    off() {
      socket?.close();
      socket = null;
    },
  };
};

const replyTo = (line: string): string => {
  if (/^EHLO/i.test(line)) return "250-mx\r\n250 PIPELINING\r\n";
  if (/^RCPT/i.test(line)) return KNOWN_USER.test(line) ? "250 2.1.5 Ok\r\n" : "550 5.1.1 User unknown\r\n";
  return /^QUIT/i.test(line) ? "221 2.0.0 Bye\r\n" : "250 2.0.0 Ok\r\n";
};

/** The mail host of all these domains; while it is off the system refuses new connections, as a firewall that rejects. */
const switchedMailHost = (): Switched => {
  let listener: Bun.TCPSocketListener<{ pending: string }> | null = null;
  return {
    async on() {
      listener = Bun.listen<{ pending: string }>({
        hostname: MAIL_HOST_IP,
        port: SMTP_PORT,
        socket: {
          open(socket) {
            socket.data = { pending: "" };
            socket.write("220 mx ESMTP\r\n");
          },
          data(socket, bytes) {
            const lines = (socket.data.pending + bytes.toString("latin1")).split("\r\n");
            socket.data.pending = lines.pop() ?? "";
            socket.write(lines.map(replyTo).join(""));
            if (lines.some((line) => /^QUIT/i.test(line))) socket.end();
          },
          error: () => undefined,
        },
      });
    },
    off() {
      listener?.stop();
      listener = null;
    },
  };
};

const THEME = "outage";
const BASE = `http://${OUTAGE_HTTP.ip}:${OUTAGE_HTTP.port}`;
const ADDRESSES = 2_000;
const DOMAINS = 500;
/** How long it is away, and how long the rest of the list may take then. */
const AWAY_MS_MAX = 60_000;
const END_MS_MAX = 180_000;
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

const cellOf = (what: string, expected: string, got: string): Claim => claim(THEME, what, expected, got);

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
const runList = async (key: string, gone: Switched, about: { name: string; reason: string }): Promise<Claim[]> => {
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
export const runOutage = async (supervisor: Supervisor, lab: Subject): Promise<readonly Claim[]> => {
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
