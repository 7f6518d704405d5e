/**
 * `npm run chaos -- --only dmarc [--kills N] [--mails N]`: kills the binary with SIGKILL at random moments while mails with
 * DMARC reports come in over several connections, and then proves from the database that every mail answered with 250 is
 * there, each report once, and that every sum shown to users is the sum of what was sent.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startDnsServer } from "../../src/testing/dns-server.ts";
import { DOMAIN, mailOf } from "../bench/dmarc-mails.ts";
import { createAccount, eventually, kill, startServer } from "../harness/binary.ts";
import { freePort, respondWith } from "../harness/world.ts";
import { count, openDatabase, printFindings } from "./claims.ts";
import { claimsOf } from "./dmarc-claims.ts";
import { createStream } from "./dmarc-stream.ts";

const { values } = parseArgs({
  options: { kills: { type: "string", default: "30" }, mails: { type: "string", default: "2000" } },
});
const kills = Number(values.kills);
const mailsTotal = Number(values.mails);
const CONNECTIONS = 8;
const UP_MS_MAX = 500;
const END_MS_MAX = 60_000;
const DAY_S = 86_400;
const PLACE = { ip: "127.20.0.25", port: freePort() };

const folder = mkdtempSync(join(tmpdir(), "postwarden-chaos-"));
/** Nobody publishes anything in this world. */
const dns = await startDnsServer((query) => respondWith(query, undefined));
const env = {
  POSTWARDEN_DATA_DIR: folder,
  POSTWARDEN_PORT: "0",
  POSTWARDEN_DNS_SERVERS: `${dns.server.address}:${dns.server.port}`,
  POSTWARDEN_REPORT_HOST: "reports.chaos.test",
  POSTWARDEN_REPORT_LISTEN: `${PLACE.ip}:${PLACE.port}`,
};
const todayS = Math.floor(Date.now() / 1000 / DAY_S) * DAY_S;

/** Enrols the domain and answers its reporting address. */
const enrol = async (url: string, key: string): Promise<string> => {
  const headers = { authorization: `Bearer ${key}` };
  const body = JSON.stringify({ domain: DOMAIN });
  const response = await fetch(`${url}/v1/dmarc/domains`, { method: "POST", headers, body });
  const { domain } = (await response.json()) as { domain?: { reporting_address?: string } };
  if (domain?.reporting_address === undefined) throw new Error(`enrolment was answered with ${response.status}`);
  return domain.reporting_address;
};

const pendingNow = (): number => {
  const db = openDatabase(folder);
  const pending = count(db, "dmarc_ingestions WHERE status = 'pending'");
  db.close();
  return pending;
};

try {
  const key = createAccount("chaos", { env });
  const first = await startServer(env);
  const address = await enrol(first.url, key);
  await kill(first, "SIGTERM");
  const parcelOf = (n: number) => ({ from: "dmarc@reporter.example", to: address, bytes: mailOf(n, address, todayS) });
  const stream = createStream(PLACE, mailsTotal, { connections: CONNECTIONS, parcelOf });
  let pendingAtKills = 0;
  for (let done = 0; done < kills; done++) {
    const server = await startServer(env);
    const sending = stream.send(Math.ceil(stream.left / (kills - done)));
    await Bun.sleep(Math.random() * UP_MS_MAX);
    await kill(server, "SIGKILL");
    sending.stop();
    await sending.done;
    pendingAtKills += pendingNow();
    if ((done + 1) % 10 === 0) console.error(`${done + 1} kills, ${stream.acknowledged.size} mails acknowledged`);
  }
  const last = await startServer(env);
  const rest = stream.send(mailsTotal);
  await Promise.race([rest.done, Bun.sleep(END_MS_MAX)]);
  rest.stop();
  await eventually(() => pendingNow() === 0, END_MS_MAX);
  await kill(last, "SIGTERM");
  await rest.done;
  const refused = [...stream.refused].map(([code, times]) => `${times} × ${code}`).join(", ") || "none";
  const failed = printFindings("dmarc", {
    summary: `${kills} kills, ${mailsTotal} mails; ${stream.repeated} sent again, ${pendingAtKills} found pending after a kill, refused: ${refused}`,
    claims: claimsOf(folder, mailsTotal, stream.acknowledged),
  });
  process.exitCode = failed === 0 ? 0 : 1;
} finally {
  dns.stop();
  rmSync(folder, { recursive: true, force: true });
}
process.exit();
