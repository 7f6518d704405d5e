import { join } from "node:path";
import type { Subject } from "./ask.ts";
import { cellOf, createApi, type DmarcCell } from "./dmarc-api.ts";
import { startChangingDns } from "./dmarc-dns.ts";
import { runDomains, ZONE_BEFORE } from "./dmarc-domains.ts";
import { makeSigningKey, prepareMailDmarc } from "./dmarc-mail-dmarc.ts";
import { prepareOpenDmarc } from "./dmarc-opendmarc.ts";
import { ensureReporters } from "./dmarc-packages.ts";
import { DMARC_DNS, DMARC_HTTP, RECEIVER, REPORT_HOST } from "./dmarc-places.ts";
import { startRelay } from "./dmarc-postfix.ts";
import { runRefusals } from "./dmarc-refusals.ts";
import { judgeReports } from "./dmarc-reports.ts";
import { judgeSources, REVERSE_ZONE } from "./dmarc-sources.ts";
import type { Supervisor } from "./processes.ts";
import { startService } from "./run.ts";

const SERVICE = "serve-dmarc";
const THEME = "DMARC reports";
const OVER_TLS = new RegExp(`TLS connection established to ${RECEIVER.ip.replaceAll(".", "\\.")}.*TLSv1\\.3`);

/** The name server of the domains, for programs that have only the machine's settings. */
const writeResolver = async (directory: string): Promise<Readonly<Record<string, string>>> => {
  const path = join(directory, "dmarc-resolv.conf");
  await Bun.write(path, `nameserver ${DMARC_DNS.ip}\noptions timeout:2 attempts:2\n`);
  return { "/etc/resolv.conf": path };
};

/**
 * Enrols domains of every state, has real reporters write about messages of which the truth is known, and compares what the
 * interface says with it; tries what the receiver must refuse. `cache` holds the unpacked packages.
 */
export const runDmarc = async (supervisor: Supervisor, lab: Subject, cache: string): Promise<readonly DmarcCell[]> => {
  const { directory } = lab;
  const unpacked = await ensureReporters(supervisor, cache);
  const key = makeSigningKey();
  const files = await writeResolver(directory);
  const dns = await startChangingDns(supervisor, directory, {
    always: { ...key.zone, ...REVERSE_ZONE },
    zone: ZONE_BEFORE,
  });
  const environment = {
    ...lab.environment,
    POSTWARDEN_DNS_SERVERS: `${DMARC_DNS.ip}:${DMARC_DNS.port}`,
    POSTWARDEN_REPORT_HOST: REPORT_HOST,
    POSTWARDEN_REPORT_LISTEN: `${RECEIVER.ip}:${RECEIVER.port}`,
  };
  const [relayLog, mailDmarc, openDmarc, liveKey] = await Promise.all([
    startRelay(supervisor, directory, files),
    prepareMailDmarc(supervisor, directory, { files, pem: key.pem }),
    prepareOpenDmarc(supervisor, directory, { unpacked, files }),
    startService(supervisor, { ...lab, environment }, { name: SERVICE, ...DMARC_HTTP }),
  ]);
  const api = createApi(liveKey);
  const { enrolled, cells } = await runDomains(api, dns);
  const refusals = runRefusals(supervisor, api, enrolled);
  const tokens = [...enrolled].map(([name, { domain }]) => [name, domain.reporting_address.split("@")[0] ?? ""]);
  openDmarc.setTokens(Object.fromEntries(tokens));
  await mailDmarc.report();
  await openDmarc.report();
  const reports = await judgeReports(api, enrolled);
  const sources = await judgeSources(api, enrolled);
  const overTls = OVER_TLS.test(await relayLog()) ? "over TLS 1.3" : "in the clear";
  const relay = cellOf(THEME, "how Postfix delivered", "over TLS 1.3", overTls);
  return [...cells, ...reports, ...sources, relay, ...(await refusals)];
};

/** What was wrong, line by line, and the score of each theme. */
export const dmarcText = (cells: readonly DmarcCell[]): string => {
  if (cells.length === 0) return "";
  const wrong = cells.filter(({ right }) => !right);
  const themes = Map.groupBy(cells, ({ theme }) => theme);
  return [
    ...wrong.map(
      ({ theme, what, expected, got }) => `  ${theme}: ${what}\n    expected ${expected}\n    got      ${got}`,
    ),
    ...[...themes].map(([theme, all]) => `${theme}: ${all.filter(({ right }) => right).length}/${all.length}`),
    "",
  ].join("\n");
};
